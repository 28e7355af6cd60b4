"""The start of helper processes: their priority and limits, and how an order becomes an answer."""

import json
import os

from svc.builtin import pdf, speak
from svc.builtin.painter import paint
from svc.builtin.processes import ProcessPool


async def test_module_answers_an_order_within_its_limits_and_after_the_server() -> None:
    pool = ProcessPool("tests.support.told_limits")
    order, priority, limits = json.loads(await pool.run({"prompt": "\u00e4"}))
    await pool.close()
    assert order == {"prompt": "\u00e4"} and priority == min(os.getpriority(os.PRIO_PROCESS, 0) + 15, 19)
    assert limits == [[30, 30], [1 << 30, 1 << 30]]


def test_every_helper_has_limits() -> None:
    for module in (pdf, speak, paint):
        assert 30 <= module.CPU_SECONDS <= 120 and 256 << 20 <= module.MEMORY_BYTES <= 1 << 30
