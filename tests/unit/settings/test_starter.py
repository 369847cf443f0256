"""What `tidegate init` writes can be read, and is what the examples hold."""

from pathlib import Path

from tidegate.settings.graph import holding_times, offered
from tidegate.settings.load import loads
from tidegate.settings.starter import starter
from tidegate.units import SECOND

EXAMPLE = Path(__file__).parents[3] / "examples" / "minimal.yaml"


def test_it_loads_and_leaves_nothing_open() -> None:
    draft = loads(starter())
    assert draft.unknowns == ()
    assert list(draft.system().services) == ["shop", "stock"]


def test_today_it_works_with_room_to_spare() -> None:
    system = loads(starter()).system()
    load, held = offered(system), holding_times(system)
    for name, service in system.services.items():
        assert load[name] * held[name] / SECOND < 0.75 * (service.workers or 0)


def test_it_is_the_minimal_example() -> None:
    assert EXAMPLE.read_text("utf-8") == starter()


def test_its_last_lines_can_be_tried() -> None:
    text = starter().replace("time: 40ms", "time: 10ms..50ms").replace("workers: 8 ", "workers: ")
    assert [u.path[-1] for u in loads(text).unknowns] == ["workers", "time"]
