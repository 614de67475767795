"""What files with KV are called."""

from luftpause.core.model.ids import KvFile
from luftpause.core.model.parked_kv import kv_file_name


def test_a_file_is_named_by_its_number_alone() -> None:
    assert kv_file_name(KvFile(7)) == "run-7.kv"
