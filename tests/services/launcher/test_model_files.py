"""Where model files may lie, looked at when the config is read and again at each start."""

from pathlib import Path

import pytest

from luftpause.services.launcher.model_files import model_file


def test_a_file_that_was_moved_out_after_it_was_looked_at_is_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "models", tmp_path / "secret"
    inside.mkdir()
    outside.write_text("s")
    path = inside / "m.gguf"
    path.write_text("m")
    found = model_file("m.gguf", str(inside), None)
    assert found is not None
    assert found.fault() == ""
    path.unlink()
    assert "there is no" in found.fault()
    path.symlink_to(outside)
    assert "lies outside launcher.model_dir" in found.fault()


def test_a_file_that_became_a_link_inside_the_folder_is_another_file(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    found = model_file("b", str(tmp_path), None)
    assert found is not None
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert "leads elsewhere than it did" in found.fault()


def test_a_ring_of_links_is_a_fault_and_no_crash(tmp_path: Path) -> None:
    found = model_file("a", str(tmp_path), None)
    assert found is not None
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert found.fault() != ""


def test_the_bundled_file_may_lie_elsewhere_and_no_path_is_no_file(tmp_path: Path) -> None:
    bundled = tmp_path / "bundled.gguf"
    bundled.write_bytes(b"12345")
    found = model_file(str(bundled), str(tmp_path / "models"), bundled)
    assert found is not None
    assert (found.fault(), found.size_bytes()) == ("", 5)
    assert model_file("", str(tmp_path), None) is None


def test_a_folder_is_as_large_as_its_files(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    for name in ("1", "2"):
        (tmp_path / "w" / name).write_bytes(b"x" * 10)
    found = model_file("w", str(tmp_path), None)
    assert found is not None
    assert found.size_bytes() == 20
    missing = model_file("x", str(tmp_path), None)
    assert missing is not None
    assert missing.size_bytes() == 0


@pytest.mark.parametrize("name", ["m\0", "x" * 5000, "~no-such-user/m"])
def test_a_path_that_no_file_can_have_is_a_fault_and_no_crash(tmp_path: Path, name: str) -> None:
    for path, folder in ((name, str(tmp_path)), ("m", name)):
        found = model_file(path, folder, None)
        assert found is not None
        assert found.fault() != ""
        assert (found.size_bytes(), found.stamp()) == (0, "")


def test_what_lies_in_a_folder_is_looked_at_too(tmp_path: Path) -> None:
    inside, outside = tmp_path / "models", tmp_path / "secret"
    weights = inside / "m" / "snapshot"
    weights.mkdir(parents=True)
    outside.write_text("s")
    (inside / "blobs").mkdir()
    (inside / "blobs" / "1").write_bytes(b"12345")
    (weights / "w.safetensors").symlink_to(inside / "blobs" / "1")
    (weights / "again").symlink_to(weights)
    found = model_file("m/snapshot", str(inside), None)
    assert found is not None
    assert (found.fault(), found.size_bytes()) == ("", 5)
    (inside / "blobs" / "deep").mkdir()
    (weights / "further").symlink_to(inside / "blobs" / "deep")
    (inside / "blobs" / "deep" / "x").symlink_to(outside)
    assert "lies outside launcher.model_dir" in found.fault()
    (inside / "blobs" / "deep" / "x").unlink()
    (weights / "w.safetensors").unlink()
    (weights / "w.safetensors").symlink_to(outside)
    assert "lies outside launcher.model_dir" in found.fault()


def test_a_file_in_parts_is_all_of_them(tmp_path: Path) -> None:
    inside = tmp_path / "models"
    inside.mkdir()
    names = [f"m-0000{part}-of-00003.gguf" for part in (1, 2, 3)]
    for name in names:
        (inside / name).write_bytes(b"x" * 10)
    found = model_file(names[0], str(inside), None)
    assert found is not None
    assert (found.fault(), found.size_bytes()) == ("", 30)
    before = found.stamp()
    (inside / names[2]).write_bytes(b"x" * 11)
    assert found.stamp() != before
    (inside / names[2]).unlink()
    assert found.fault() == f"there is no '{names[2]}'"
    (tmp_path / "secret").touch()
    (inside / names[2]).symlink_to(tmp_path / "secret")
    assert "lies outside launcher.model_dir" in found.fault()
