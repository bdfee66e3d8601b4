"""Max-min fair shares over a topology, as flows come and go and rates change.

An allocation is max-min fair when no flow's share can grow without that of a flow with no more shrinking. It is found
by progressive filling (Bertsekas and Gallager, "Data Networks", section 6.5.2): all shares grow together until a link
is full; the flows on it keep what they have, the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from astraea.eval.data import Floats, Mask


def crossings(paths: Sequence[Sequence[int]], links: int) -> Mask:
    """[links, flows]: whether the flow crosses the link."""
    matrix = np.zeros((links, len(paths)), dtype=bool)
    for flow, path in enumerate(paths):
        matrix[list(path), flow] = True
    return matrix


def allocate(capacity: Floats, crosses: Mask) -> tuple[Floats, Mask]:
    """Shares of flows that are all active, and which links are full, for one set of capacities.

    `capacity` is [links] in any unit, `crosses` [links, flows]; the shares [flows] have the same unit.
    """
    share = np.zeros(crosses.shape[1])
    growing = crosses.any(axis=0)
    left = capacity.astype(float)
    while growing.any():
        users = (crosses & growing).sum(axis=1)
        level = np.divide(left, users, out=np.full(len(left), np.inf), where=users > 0)
        tightest = int(level.argmin())
        frozen = crosses[tightest] & growing
        share[frozen] = level[tightest]
        left = np.maximum(left - level[tightest] * (crosses & frozen).sum(axis=1), 0.0)
        growing &= ~frozen
    return share, crosses.any(axis=1) & (left <= 1e-9 * capacity)


def fair_shares(capacity: Floats, crosses: Mask, active: Mask) -> tuple[Floats, Mask]:
    """Share of every flow and whether every link is full, slot by slot.

    `capacity` is [links, slots], `crosses` [links, flows], `active` [flows, slots]. Returns the shares
    [flows, slots], zero for flows that are not active, and the links that are full [links, slots].
    """
    shares = np.zeros(active.shape)
    full = np.zeros(capacity.shape, dtype=bool)
    if crosses.shape[0] == 1:
        users = active.sum(axis=0)
        np.divide(capacity[0], users, out=shares, where=active)
        return shares, (users > 0)[None, :]
    # Most slots are like others: every different combination is worked out once.
    columns = np.vstack([capacity, active])
    _, first, which = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    for group, slot in enumerate(first):
        flows = active[:, slot]
        share, links = allocate(capacity[:, slot], crosses[:, flows])
        members = np.flatnonzero(which == group)
        shares[np.ix_(np.flatnonzero(flows), members)] = share[:, None]
        full[:, members] = links[:, None]
    return shares, full
