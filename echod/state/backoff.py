"""How long a failing job rests before it is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Growing pauses with jitter, so that jobs that failed together do not come back together.

    Attributes:
        base_seconds: the pause after the first failure.
        factor: what each further failure multiplies it by.
        cap_seconds: no pause is longer.
    """

    base_seconds: float = 30.0
    factor: float = 4.0
    cap_seconds: float = 3600.0

    def pause(self, failures: int, rng: random.Random) -> float:
        """Seconds to rest after so many failures: between a half and the whole of the nominal pause; 0 after none."""
        if failures < 1:
            return 0.0
        # The exponent is bounded: a large one would overflow, and the cap is reached long before.
        nominal = min(self.cap_seconds, self.base_seconds * self.factor ** min(failures - 1, 64))
        return nominal * rng.uniform(0.5, 1.0)
