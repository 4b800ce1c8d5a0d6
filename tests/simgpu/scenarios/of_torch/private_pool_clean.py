from __future__ import annotations

import warnings

import torch


def test_graph_is_captured() -> None:
    graph = torch.cuda.CUDAGraph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing runs here: "the graph is empty"
        with torch.cuda.graph(graph):
            torch.empty(4 << 20, dtype=torch.uint8, device="cuda")
    graph.reset()
    torch.cuda.empty_cache()
