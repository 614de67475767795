# Thin wrappers; everything also works without make: sh scripts/up, sh scripts/test, sh scripts/check.
.PHONY: check fix test nightly clients conformance newcomer bench compile swap docs up venv lock

check: venv
	@sh scripts/check

fix: venv
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

test: venv
	@sh scripts/check tests

nightly: venv
	@sh scripts/second-model
	@.venv/bin/pytest -q -m "nightly or not nightly" --timeout=3600 --cov --cov-report=term
	@sh scripts/check compiled-nightly

clients:
	@sh scripts/clients

conformance:
	@sh scripts/conformance

newcomer:
	@sh scripts/newcomer

bench: venv
	@sh scripts/bench --peers || echo "bench: measuring without other people's routers" >&2
	@.venv/bin/luftpause bench all --results benchmarks/results/bench
	@.venv/bin/luftpause bench w1 w3 w6 seed-mcp seed-mcp-fanout --engine http --results benchmarks/results/bench
	@.venv/bin/luftpause bench w1-small seed-single-pass --engine llama --results benchmarks/results/bench
	@.venv/bin/python -m benchmarks.fidelity --json benchmarks/results/fidelity.json
	@.venv/bin/python benchmarks/decide.py
	@.venv/bin/python benchmarks/link.py
	@.venv/bin/python benchmarks/text_calls.py
	@.venv/bin/python benchmarks/sim.py
	@.venv/bin/python benchmarks/page.py
	@sh scripts/bench

compile:
	@sh scripts/compile

swap: venv
	@sh scripts/swap

docs: venv
	@.venv/bin/python scripts/docs.py

up:
	@sh scripts/up

venv:
	@sh scripts/venv dev

lock: venv
	@sh scripts/lock
