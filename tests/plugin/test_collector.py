from __future__ import annotations

import pytest


def test_the_collector_sees_the_whole_heap_again_after_the_session(
    pytester: pytest.Pytester,
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
        print("status", int(status), "left frozen", gc.get_freeze_count() > before)
        """.replace("*ARGS", '"-p", "no:randomly"'),
    )
    result = pytester.runpython(pytester.path / "outer.py")
    result.stdout.fnmatch_lines(["status 0 left frozen False"])
