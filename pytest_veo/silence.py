"""Nobody hears of a re-run: its reports, output and logs go nowhere."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import TYPE_CHECKING
from typing import Any


if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


@contextlib.contextmanager
def silence(config: pytest.Config) -> Iterator[None]:
    """Keep everything that happens meanwhile from whoever shows or counts it."""
    with (
        _unheard(config.hook.pytest_runtest_logreport),  # subtests report on their own
        _unheard(config.hook.pytest_exception_interact),  # no debugger opens
        _unheard_by(config, "allure_listener"),
        _no_logging(config),
        _no_output(config),
    ):
        yield


@contextlib.contextmanager
def _unheard(hook: Any) -> Iterator[None]:
    """No plugin hears of this hook."""
    implementations = hook._hookimpls
    hook._hookimpls = []
    try:
        yield
    finally:
        hook._hookimpls = implementations


@contextlib.contextmanager
def _unheard_by(config: pytest.Config, name: str) -> Iterator[None]:
    """A plugin that only tells of tests, and writes each run into its report."""
    plugin = config.pluginmanager.get_plugin(name)
    callers: list[Any] = config.pluginmanager.get_hookcallers(plugin) or []
    kept = [caller._hookimpls for caller in callers]
    for caller in callers:
        caller._hookimpls = [i for i in caller._hookimpls if i.plugin is not plugin]
    try:
        yield
    finally:
        for caller, implementations in zip(callers, kept, strict=True):
            caller._hookimpls = implementations


def kept_lists(config: pytest.Config) -> list[list[Any]]:
    """Lists of other plugins that take an entry for each run of a test."""
    found = []
    for owner, name in _KEPT:
        held = getattr(getattr(config, owner, None), name, None)
        if isinstance(held, list):
            found.append(held)
    return found


_KEPT = (
    ("_benchmarksession", "benchmarks"),  # pytest-benchmark
    ("_syrupy", "_assertions"),
)


@contextlib.contextmanager
def _no_logging(config: pytest.Config) -> Iterator[None]:
    """Neither the live log nor the log file repeats what is logged."""
    plugin = config.pluginmanager.getplugin("logging-plugin")
    handlers: list[logging.Handler] = [
        handler
        for name in ("log_cli_handler", "log_file_handler")
        if isinstance(handler := getattr(plugin, name, None), logging.Handler)
    ]
    levels = [handler.level for handler in handlers]
    for handler in handlers:
        handler.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for handler, level in zip(handlers, levels, strict=True):
            handler.setLevel(level)


@contextlib.contextmanager
def _no_output(config: pytest.Config) -> Iterator[None]:
    """Where pytest does not capture descriptors, they lead nowhere."""
    method = config.getoption("capture", "no")
    if method == "fd":
        yield
        return
    with contextlib.ExitStack() as stack:
        void = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123
        for descriptor in (1, 2):
            stack.enter_context(_leads_to(void.fileno(), descriptor))
        if method == "no":
            stack.enter_context(contextlib.redirect_stdout(void))
            stack.enter_context(contextlib.redirect_stderr(void))
        yield


@contextlib.contextmanager
def _leads_to(target: int, descriptor: int) -> Iterator[None]:
    try:
        saved = os.dup(descriptor)
    except OSError:  # closed: nothing can be written to it
        yield
        return
    _flush()
    os.dup2(target, descriptor)
    try:
        yield
    finally:
        _flush()
        os.dup2(saved, descriptor)
        os.close(saved)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None and not stream.closed:
            stream.flush()
