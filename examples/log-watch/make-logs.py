"""Writes a log to try the watch with: python3 make-logs.py FOLDER. Ends with Ctrl-C.

A shop: most lines are fine, some orders fail, and every quarter of a minute something else breaks for a moment.
"""

import itertools
import random
import sys
import time
from datetime import datetime
from pathlib import Path

TROUBLES = [
    "the warehouse does not answer, attempt {}",
    "cannot write invoice {}: no space left on device",
    "stock of article {} is below zero",
    "the bank says: too many requests ({})",
]
path = Path(sys.argv[1], "shop.log")
path.parent.mkdir(parents=True, exist_ok=True)


def write(level, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{datetime.now().isoformat(timespec='milliseconds')} {level} {text}\n")


for trouble in itertools.cycle(TROUBLES):
    for _ in range(40):
        order = random.randint(1000, 9999)
        write("INFO", f"order {order} was paid")
        if random.random() < 0.1:
            write("ERROR", f"order {order}: the card was refused")
        time.sleep(0.3)
    for number in range(30):
        write("ERROR", trouble.format(number))
        time.sleep(0.1)
