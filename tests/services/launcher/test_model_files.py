"""Where model files may lie, looked at when the config is read and again at each start."""

from pathlib import Path

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
