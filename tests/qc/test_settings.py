import pytest

from qc.errors import QcError
from qc.settings import Settings


def test_a_table_overrides_defaults():
    assert Settings.from_table({"idle_rows": 20, "false_alarm": 0.01}) == Settings(idle_rows=20, false_alarm=0.01)
    assert Settings.from_table({}) == Settings()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"idle_row": 20}, "did you mean 'idle_rows'"),
        ({"idle_rows": "many"}, "give a int"),
        ({"idle_rows": True}, "give a int"),
        ({"idle_rows": 1}, "too small"),
        ({"false_alarm": 0}, "between 0 and 1"),
        ({"false_alarm": 1.5}, "between 0 and 1"),
        ({"seed": -1}, "too small"),
        ({"within": "size"}, "one of task, family"),
    ],
)
def test_bad_settings_are_clear_errors(table, told):
    with pytest.raises(QcError, match=told):
        Settings.from_table(table)
