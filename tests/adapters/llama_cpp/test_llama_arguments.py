"""The command line of llama.cpp's server."""

from pathlib import Path

from luftpause.adapters.llama_cpp.arguments import ServerOptions, server_arguments
from luftpause.adapters.llama_cpp.server import options_of

MODEL = Path("/models/small.gguf")


def test_the_server_listens_on_loopback_with_metrics_slots_and_one_thread() -> None:
    line = " ".join(server_arguments(ServerOptions(model=MODEL, port="8123", alias="small")))
    assert line == (
        "-m /models/small.gguf --host 127.0.0.1 --port 8123 --alias small --parallel 4 -c 16384 -t 1"
        " --metrics --slots --jinja"
    )


def test_our_template_comes_with_a_calmer_temperature_and_further_arguments_come_last() -> None:
    options = ServerOptions(model=MODEL, port="1", alias="a", template=Path("/t.jinja"), threads=2)
    assert server_arguments(options, ["--mlock"])[-8:] == (
        *("--metrics", "--slots", "--jinja"),
        *("--chat-template-file", "/t.jinja", "--temp", "0.3", "--mlock"),
    )


def test_our_own_server_understands_every_argument_that_we_give() -> None:
    arguments = server_arguments(ServerOptions(model=MODEL, port="8123", alias="small", template=Path("/t.jinja")))
    options = options_of(list(arguments))
    assert (options.model, options.host, options.port, options.alias) == (MODEL, "127.0.0.1", 8123, "small")
    assert (options.parallel, options.ctx_size, options.threads, options.temp) == (4, 16384, 1, 0.3)
    assert (options.metrics, options.slots, options.jinja) == (True, True, True)
    assert options.chat_template_file == Path("/t.jinja")
