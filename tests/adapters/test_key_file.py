import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from luftpause.adapters.key_file import KEY_BYTES, KeyFileError, key_in

posix = pytest.mark.skipif(os.name != "posix", reason="file modes")


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "state" / "mcp.key"
    key = key_in(path)
    assert len(key) == KEY_BYTES
    assert key_in(path) == key
    assert key_in(tmp_path / "other.key") != key
    assert sorted(each.name for each in path.parent.iterdir()) == ["mcp.key"]


@posix
def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    key_in(tmp_path / "mcp.key")
    assert stat.S_IMODE((tmp_path / "mcp.key").stat().st_mode) == 0o600


@posix
def test_one_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mcp.key"
    key_in(path)
    path.chmod(0o640)
    with pytest.raises(KeyFileError, match="can be read by others: chmod 600"):
        key_in(path)


@pytest.mark.parametrize("text", ["", "no key", "00" * (KEY_BYTES - 1)])
def test_what_is_no_key_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="remove it to have a new one made"):
        key_in(path)
    assert path.read_text() == text


def test_all_who_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda _: key_in(tmp_path / "mcp.key"), range(64)))
    assert len(keys) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyFileError, match=r"mcp\.key: "):
        key_in(tmp_path / "file" / "mcp.key")
