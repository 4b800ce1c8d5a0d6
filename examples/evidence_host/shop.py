"""A small program with one leak of each common kind."""

from __future__ import annotations

import functools
import itertools
import logging
import threading


class Basket:
    """Kept by the cache of its own method."""

    def __init__(self, prices):
        self.prices = list(prices)

    @functools.cache
    def total(self, discount):
        return sum(self.prices) - discount


FAILED = []


def charge(card):
    receipt = [f"line {i} of the receipt for {card}" for i in range(200)]
    raise ValueError(f"card {card} was refused after {len(receipt)} lines")


def try_to_charge(card):
    try:
        charge(card)
    except ValueError as error:
        FAILED.append(error)


def audit(path, text):
    log = logging.getLogger("shop.audit")
    log.propagate = False
    log.setLevel(logging.INFO)
    log.addHandler(logging.FileHandler(path))
    log.info(text)


class Stock:
    """Watches for deliveries until it is told to stop, which nobody does."""

    def __init__(self):
        self.stop = threading.Event()
        self.watcher = threading.Thread(target=self.stop.wait, daemon=True)
        self.watcher.start()


SESSIONS = {}
_numbers = itertools.count()


def log_in(user):
    SESSIONS[next(_numbers)] = session = {"user": user, "page": bytearray(4000)}
    return session
