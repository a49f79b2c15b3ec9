"""Units and conversion constants, named so that no formula carries a magic number.

Names say what a figure is: ``gib`` is 2**30 bytes, ``gb`` is 1e9 bytes.
"""

from typing import Final

BYTES_PER_GIB: Final = 2.0**30
BYTES_PER_GB: Final = 1e9
FLOP_PER_TFLOP: Final = 1e12
MS_PER_S: Final = 1e3
SECONDS_PER_HOUR: Final = 3600.0
W_PER_KW: Final = 1e3
G_PER_TONNE: Final = 1e6
L_PER_M3: Final = 1e3
TOKENS_PER_MILLION: Final = 1e6
MONTHS_PER_YEAR: Final = 12.0

#: A mean year: 365.25 days (cost model of the practitioners, docs/method.md section "Bill").
HOURS_PER_YEAR: Final = 8766.0
