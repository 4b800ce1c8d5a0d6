from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("chosen", "status"),
    [
        pytest.param("test_it", 0, id="a test ran"),
        pytest.param("nothing", 5, id="none was chosen"),
    ],
)
def test_the_collector_sees_the_whole_heap_again_after_the_session(
    pytester: pytest.Pytester, chosen: str, status: int
) -> None:
    pytester.makepyfile(
        test_it="""
        def test_it():
            pass
        """,
        outer="""
        import gc
        import pytest

        before = gc.get_freeze_count()
        status = pytest.main(["-q", "test_it.py", "--veo-leak-check", *ARGS])
        left = gc.get_freeze_count() - before > 10_000  # some are CPython 3.12's own
        print("status", int(status), "left frozen", left)
        """.replace("*ARGS", f'"-p", "no:randomly", "-k", "{chosen}"'),
    )
    result = pytester.runpython(pytester.path / "outer.py")
    result.stdout.fnmatch_lines([f"status {status} left frozen False"])
