"""Lines of keys in TOML texts."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from luftpause.config.locate import locate
from luftpause.config.problems import KeyPath

EVERYTHING = '''\
# a comment with = and [brackets]
top = 1

[launcher] # trailing
model_dir = "a # no comment \\" [x]"
[[launcher.models]]
name = """
key = "not a key"
[not.a.table]
ends in one quote""""
args = [
  "]", # ] in a comment
  'C:\\',
  "-t", "1",
]
env = { A = "}", "B C" = '{' }
[[launcher.models]]
"name" = \'\'\'
x = 1
\'\'\'
dotted.key."with space" = 2
[launcher.models.extra]
deep = true
[ scheduler ]
port = 5000
'''


def test_each_key_is_found_on_its_line_whatever_the_values_look_like() -> None:
    tomllib.loads(EVERYTHING)
    assert locate(EVERYTHING) == {
        ("top",): 2,
        ("launcher",): 4,
        ("launcher", "model_dir"): 5,
        ("launcher", "models"): 6,
        ("launcher", "models", 0): 6,
        ("launcher", "models", 0, "name"): 7,
        ("launcher", "models", 0, "args"): 11,
        ("launcher", "models", 0, "env"): 16,
        ("launcher", "models", 1): 17,
        ("launcher", "models", 1, "name"): 18,
        ("launcher", "models", 1, "dotted"): 21,
        ("launcher", "models", 1, "dotted", "key"): 21,
        ("launcher", "models", 1, "dotted", "key", "with space"): 21,
        ("launcher", "models", 1, "extra"): 22,
        ("launcher", "models", 1, "extra", "deep"): 23,
        ("scheduler",): 24,
        ("scheduler", "port"): 25,
    }


def test_lines_are_right_with_the_line_ends_of_windows() -> None:
    assert locate("a = 1\r\n\r\n[b]\r\nc = [\r\n1]\r\nd = 2\r\n") == {
        ("a",): 1,
        ("b",): 3,
        ("b", "c"): 4,
        ("b", "d"): 6,
    }


def test_a_text_without_keys_has_no_lines() -> None:
    assert locate("\n# nothing\n") == {}


NAMES = st.from_regex(r"[a-z_-]{1,6}", fullmatch=True)
SCALARS = st.one_of(
    st.integers(-9, 9).map(str),
    st.sampled_from(["true", "1.5", "1979-05-27"]),
    st.text(alphabet="a[]{}#=,' .", max_size=8).map(lambda text: f'"{text}"'),
    st.text(alphabet='a[]{}#=,".\n', max_size=8).map(lambda text: f"'''{text}x'''"),
    st.text(alphabet='a[]{}#=,"', max_size=8).map(lambda text: f"'{text}'"),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[\n{', '.join(items)}\n]"))


@given(st.lists(st.tuples(NAMES, st.dictionaries(NAMES, VALUES, max_size=4)), max_size=5))
def test_every_key_of_a_generated_text_is_found_where_it_was_written(blocks: list[tuple[str, dict[str, str]]]) -> None:
    lines: list[str] = []
    expected: dict[KeyPath, int] = {}
    counts: dict[str, int] = {}
    for table, keys in blocks:
        index = counts[table] = counts.get(table, -1) + 1
        lines.append(f"[[{table}]]  # {table} = 1")
        expected.setdefault((table,), len(lines))
        expected[table, index] = len(lines)
        for key, value in keys.items():
            expected[table, index, key] = len(lines) + 1
            lines += f"{key} = {value}".split("\n")
    text = "\n".join(lines)
    tomllib.loads(text)
    assert locate(text) == expected
