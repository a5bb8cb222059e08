"""Whether the global random states were touched, which nothing that is measured may do."""

import ctypes
import pickle
import random
from functools import lru_cache
from typing import Any

import numpy as np


class GlobalRandomness:
    """The global random states of NumPy and Python, which nothing that is measured may touch."""

    def __init__(self) -> None:
        self.numpy, self.python = _state_of_numpy(), random.getstate()

    def touched(self) -> bool:
        """Whether somebody has drawn from them or set them; they are put back."""
        if self.numpy == _state_of_numpy() and self.python == random.getstate():
            return False
        np.random.set_state(pickle.loads(self.numpy))  # noqa: NPY002
        random.setstate(self.python)
        return True

    def untouched(self, who: str) -> None:
        """Raise ValueError if ``who`` has touched them."""
        if self.touched():
            raise ValueError(f"{who} used the global random state, which others may move; draw "
                             "from the rng that it is given")


def _state_of_numpy() -> bytes:
    """NumPy's global random state.

    To ask for it takes 100 microseconds, to read the words and the place of its Mersenne twister,
    which draws move, takes one; a normal number that it may hold in store is not among them.
    """
    state: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
    if type(state) is np.random.MT19937:
        return _state_with(ctypes.string_at(state.ctypes.state_address, 625 * 4))
    return pickle.dumps(np.random.get_state(legacy=False))  # noqa: NPY002


@lru_cache(maxsize=1)
def _state_with(memory: bytes) -> bytes:
    return pickle.dumps(np.random.get_state(legacy=False))  # noqa: NPY002
