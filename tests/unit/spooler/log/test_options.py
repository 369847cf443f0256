"""Does a lane's log do what its settings say?"""

from pathlib import Path

from tidegate.settings import spool as settings
from tidegate.spooler.log.options import DEFAULT, options_of


def test_a_plain_lane_has_the_defaults() -> None:
    options = options_of(settings.Lane(to="file:x"), Path())
    assert options._replace(codec=DEFAULT.codec) == DEFAULT
    assert options.codec.key_id == 0


def test_a_lane_with_narrow_bounds_has_segments_that_fit_into_them() -> None:
    bounds = settings.Bounds(bytes=160 * 2**20)
    assert options_of(settings.Lane(to="file:x", bounds=bounds), Path()).segment == 10 * 2**20
    bounds = settings.Bounds(bytes=1000)
    assert options_of(settings.Lane(to="file:x", bounds=bounds), Path()).segment == 2**20


def test_a_key_file_is_found_beside_the_system_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("ab" * 32)
    lane = settings.Lane(to="file:x", key_file="key", durable="never")
    options = options_of(lane, tmp_path)
    assert options.codec.key_id != 0
    assert options.durable == "never"
