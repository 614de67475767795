"""The journal as one append-only file, `runs.jsonl`, with a checksum on every line and group commit."""
