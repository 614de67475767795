import asyncio
from pathlib import Path

from cli.examining.subjects import subject


def test_commands_read_the_same_configuration(tmp_path: Path) -> None:
    async def story() -> str:
        async with subject(tmp_path, "") as looked_at:
            return looked_at.command("up")

    assert asyncio.run(story()) == f"luftpause up --config {tmp_path}/luftpause.toml"
