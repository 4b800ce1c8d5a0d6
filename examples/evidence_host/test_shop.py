"""Five leaks of host memory, each found with `pytest --veo-leak-check`.

    pytest --veo-leak-check examples/evidence_host

No GPU and no library beyond the standard one is needed.
"""

from __future__ import annotations

import shop


def test_basket_total():
    assert shop.Basket(range(1000)).total(500) == 499_000


def test_refused_card_is_noted():
    shop.try_to_charge("1234")
    assert "refused" in str(shop.FAILED[-1])


def test_audit_is_written(tmp_path):
    shop.audit(tmp_path / "audit.log", "sold one lamp")
    assert (tmp_path / "audit.log").read_text() == "sold one lamp\n"


def test_stock_is_watched():
    assert shop.Stock().watcher.is_alive()


def test_log_in():
    assert shop.log_in("ada")["user"] == "ada"


def test_clean_twin_of_log_in():
    session = shop.log_in("ada")
    number = max(shop.SESSIONS)
    assert shop.SESSIONS.pop(number) is session
