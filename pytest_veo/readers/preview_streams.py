"""Preview streams inside a test: what the fixture `veo_preview` gives."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pytest_veo.errors import FramesError
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.preview import Preview
from pytest_veo.readers.preview import PreviewCounts
from pytest_veo.readers.preview import PreviewRequest
from pytest_veo.readers.preview import collect_preview


class PreviewStreams:
    """Receives preview streams and hands each series on to be judged.

    Args:
        use: takes each series that was received.
    """

    def __init__(self, use: Callable[[CapturedSeries], object]) -> None:
        self._use = use
        self.previews: list[Preview] = []
        """All that was received, the latest last."""

    @property
    def counts(self) -> PreviewCounts:
        """What went wrong in the latest stream, and how often.

        Raises:
            FramesError: none was received yet.
        """
        if not self.previews:
            raise FramesError("veo_preview: no stream was received yet: call it first")
        return self.previews[-1].counts

    def __call__(
        self,
        request: PreviewRequest | None = None,
        *,
        frames: int | None = None,
        seconds: float | None = None,
        **asked: Any,
    ) -> CapturedSeries:
        """Receive a stream until it closes, or enough has come.

        Args:
            request: what to connect to.
            frames: stop after so many whole frames.
            seconds: stop after so long.
            asked: the fields of a `PreviewRequest`, in place of `request`.

        Raises:
            BadSetting: a request that the service does not know.
            FramesError: not one whole frame came, the message says what did; or the
                test is asynchronous.
        """
        _refuse_in_loop()
        wanted = _request_of(request, asked)

        def run() -> Preview:
            return asyncio.run(collect_preview(wanted, frames=frames, seconds=seconds))

        # A thread of its own: the loop that this one is set to stays as it is.
        with ThreadPoolExecutor(1, "veo-preview") as thread:
            return self._keep(thread.submit(run).result())

    async def receive(
        self,
        request: PreviewRequest | None = None,
        *,
        frames: int | None = None,
        seconds: float | None = None,
        **asked: Any,
    ) -> CapturedSeries:
        """The same for asynchronous tests, in the loop that runs."""
        wanted = _request_of(request, asked)
        return self._keep(await collect_preview(wanted, frames=frames, seconds=seconds))

    def _keep(self, preview: Preview) -> CapturedSeries:
        series = preview.series
        if self.previews:
            # A test's series have different names.
            name = f"{series.name} {len(self.previews) + 1}"
            series = dataclasses.replace(series, name=name)
        self._use(series)
        self.previews.append(dataclasses.replace(preview, series=series))
        return series


def _refuse_in_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise FramesError(
        "veo_preview: an asynchronous test would stand still while it receives: write "
        "`series = await veo_preview.receive(...)`"
    )


def _request_of(
    request: PreviewRequest | None, asked: dict[str, Any]
) -> PreviewRequest:
    if request is None:
        return PreviewRequest(**asked)
    return dataclasses.replace(request, **asked) if asked else request
