"""The compiled loops of :mod:`rankrls.hinge.ordered_loss`.

Items of a query stand in label order, cut into runs of whole classes. A buffer has a row for each number that travels
with an item; runs are sorted by score, and neighbouring runs meet (their pairs are summed) and are merged.
"""

from __future__ import annotations

import numpy as np

from rankrls._compiled.jit import compiled
from rankrls._compiled.sorting import sort_descending

SMALL_RUN = 64
"""Runs that begin with this many items compare all their pairs: cheaper than six rounds of merging."""


@compiled
def split_runs(class_starts, query_classes, small, run_classes, query_runs):  # type: ignore[no-untyped-def]
    """Runs of whole classes: one class, or several that together have at most ``small`` items. Returns how many."""
    runs = 0
    for q in range(len(query_classes) - 1):
        query_runs[q] = runs
        k = query_classes[q]
        while k < query_classes[q + 1]:
            run_classes[runs] = k
            stop = k + 1
            while stop < query_classes[q + 1] and class_starts[stop + 1] - class_starts[k] <= small:
                stop += 1
            runs += 1
            k = stop
    query_runs[len(query_classes) - 1] = runs
    run_classes[runs] = query_classes[len(query_classes) - 1]
    return runs


@compiled
def _add_slacks(a, lo, middle, hi, margin, sums):  # type: ignore[no-untyped-def]
    """Weights and slacks of the active pairs between losers ``lo..middle`` and winners ``middle..hi``, and their sums.

    Rows of a buffer: score (descending in each half), row number, weight, active weight, signed slack.
    """
    one = np.uint64(1)
    key, weight, active, slack = a[0], a[2], a[3], a[4]
    s0 = s1 = s2 = 0.0
    m0 = m1 = m2 = 0.0
    p = lo
    last = key[middle]
    for i in range(middle, hi):
        k = key[i]
        step = last - k
        last = k
        m2 += step * (2.0 * m1 + step * m0)
        m1 += step * m0
        while p < middle and k - key[p] < margin:
            x = margin - (k - key[p])
            wx = weight[p] * x
            m0 += weight[p]
            m1 += wx
            m2 += wx * x
            p += one
        active[i] += m0
        slack[i] -= m1
        s0 += weight[i] * m0
        s1 += weight[i] * m1
        s2 += weight[i] * m2
    m0 = m1 = 0.0
    p = hi
    j = middle
    last = key[middle - one]
    while j > lo:
        j -= one
        k = key[j]
        m1 += (k - last) * m0
        last = k
        while p > middle and key[p - one] - k < margin:
            p -= one
            m0 += weight[p]
            m1 += weight[p] * (margin - (key[p] - k))
        active[j] += m0
        slack[j] += m1
    sums[0] += s0
    sums[1] += s1
    sums[2] += s2


@compiled
def _add_partners(a, lo, middle, hi, low, high):  # type: ignore[no-untyped-def]
    """Add to each item the vector's sum over its partners with ``low <= f_i - f_j < high``.

    Rows of a buffer: score, row number, weighted vector, sum so far.
    """
    one = np.uint64(1)
    key, value, total = a[0], a[2], a[3]
    inside = 0.0
    p = o = lo
    for i in range(middle, hi):
        k = key[i]
        while p < middle and k - key[p] < high:
            inside += value[p]
            p += one
        while o < p and k - key[o] < low:
            inside -= value[o]
            o += one
        total[i] += inside
    inside = 0.0
    p = o = hi
    j = middle
    while j > lo:
        j -= one
        k = key[j]
        while p > middle and key[p - one] - k < high:
            p -= one
            inside += value[p]
        while o > p and key[o - one] - k < low:
            o -= one
            inside -= value[o]
        total[j] += inside


@compiled
def _merge(a, b, lo, middle, hi):  # type: ignore[no-untyped-def]
    """Both halves of buffer a in one order by score, into b. With four rows the last is written twice."""
    one = np.uint64(1)
    a0, a1, a2, a3, a4 = a[0], a[1], a[2], a[3], a[-1]
    b0, b1, b2, b3, b4 = b[0], b[1], b[2], b[3], b[-1]
    i, j = lo, middle
    out = lo
    while i < middle and j < hi:
        later = np.uint64(a0[j] > a0[i])
        take = j if later else i
        b0[out] = a0[take]
        b1[out] = a1[take]
        b2[out] = a2[take]
        b3[out] = a3[take]
        b4[out] = a4[take]
        j += later
        i += one - later
        out += one
    if i == middle:
        i = j
    while out < hi:
        b0[out] = a0[i]
        b1[out] = a1[i]
        b2[out] = a2[i]
        b3[out] = a3[i]
        b4[out] = a4[i]
        i += one
        out += one


@compiled
def meet(a, b, lo, middle, hi, band, sums, top):  # type: ignore[no-untyped-def]
    """Add up the pairs between losers ``lo..middle`` and winners ``middle..hi`` of buffer a, then merge it into b.

    The band says which of ``_add_partners`` and ``_add_slacks`` it is, the latter with the margin ``high``. At the top
    nothing reads the merged order, and a stays as it is.
    """
    low, high, product = band
    if product:
        _add_partners(a, lo, middle, hi, low, high)
    else:
        _add_slacks(a, lo, middle, hi, high, sums)
    if not top:
        _merge(a, b, lo, middle, hi)


@compiled
def _pairs_of_a_run(key, weight, starts, first, last, margin, active, won, lost, squares):  # type: ignore[no-untyped-def]
    """All pairs of a short run in label order, from both sides: the inner loops hold neither sum nor branch."""
    one = np.uint64(1)
    base = np.uint64(starts[first])
    n = np.uint64(starts[last]) - base
    for i in range(n):
        active[i] = won[i] = lost[i] = squares[i] = 0.0
    for c in range(np.uint64(first), np.uint64(last)):
        lo = np.uint64(starts[c]) - base
        hi = np.uint64(starts[c + one]) - base
        for i in range(lo, hi):
            k = key[i]
            w = weight[i]
            for j in range(lo):
                lead = k - key[j]
                on = w if lead < margin else 0.0
                active[j] += on
                lost[j] += on * (margin - lead)
            for j in range(hi, n):
                lead = key[j] - k
                on = w if lead < margin else 0.0
                x = margin - lead
                active[j] += on
                won[j] += on * x
                squares[j] += on * x * x


@compiled
def _product_of_a_run(key, value, starts, first, last, low, high, total):  # type: ignore[no-untyped-def]
    """As ``_pairs_of_a_run``: the sum of the other side's values over the pairs of a band."""
    one = np.uint64(1)
    base = np.uint64(starts[first])
    n = np.uint64(starts[last]) - base
    for i in range(n):
        total[i] = 0.0
    for c in range(np.uint64(first), np.uint64(last)):
        lo = np.uint64(starts[c]) - base
        hi = np.uint64(starts[c + one]) - base
        for i in range(lo, hi):
            k = key[i]
            v = value[i]
            for j in range(lo):
                lead = k - key[j]
                total[j] += v if (lead < high) & (lead >= low) else 0.0
            for j in range(hi, n):
                lead = key[j] - k
                total[j] += v if (lead < high) & (lead >= low) else 0.0


@compiled
def _merge_runs(a, b, run_starts, first, last, offset, band, sums, top):  # type: ignore[no-untyped-def]
    """Meet and merge runs ``first..last``, sorted in buffer a from ``offset`` on, where they end up."""
    base, width = np.uint64(run_starts[first]), np.uint64(1)
    swapped = False
    while width < last - first:
        final = top and width + width >= last - first
        r = first
        while r < last:
            lo = offset + np.uint64(run_starts[r]) - base
            hi = offset + np.uint64(run_starts[min(r + width + width, last)]) - base
            if r + width < last:
                middle = offset + np.uint64(run_starts[r + width]) - base
                meet(a, b, lo, middle, hi, band, sums, final)
            else:
                _copy(a, b, lo, hi)
            r += width + width
        width += width
        if not final:
            a, b = b, a
            swapped = not swapped
    if swapped:
        _copy(a, b, offset, offset + np.uint64(run_starts[last]) - base)


@compiled
def add_runs(data, first, last, band, a, b, offset, top, sorted_at, sums):  # type: ignore[no-untyped-def]
    """Runs ``first..last`` of one query, into buffer a from ``offset`` on.

    ``data`` are scores, weights (of a product: times the vector), order, ``starts``, ``run_classes`` and
    ``run_starts``; ``band`` is the least lead, the margin, and whether it is a product. Where items stand when their
    run is sorted is kept in ``sorted_at``; a product finds it there.
    """
    f, value, order, starts, run_classes, run_starts = data
    low, high, product = band
    one = np.uint64(1)
    first, last, offset = np.uint64(first), np.uint64(last), np.uint64(offset)
    base = np.uint64(run_starts[first])
    here = np.zeros((6, np.uint64(SMALL_RUN)))
    own, w, on, slack, won, squares = here[0], here[1], here[2], here[3], here[4], here[5]
    key, rows, values, active, slacks = a[0], a[1], a[2], a[3], a[-1]
    for r in range(first, last):
        start = np.uint64(run_starts[r])
        n = np.uint64(run_starts[r + one]) - start
        at = offset + start - base
        several = run_classes[r + one] - run_classes[r] > 1
        if several:
            for k in range(n):
                row = order[start + k]
                own[k] = f[row]
                w[k] = value[row]
            if product:
                _product_of_a_run(own, w, starts, run_classes[r], run_classes[r + one], low, high, on)
                slack[:n] = on[:n]
            else:
                _pairs_of_a_run(own, w, starts, run_classes[r], run_classes[r + one], high, on, won, slack, squares)
                for k in range(n):
                    sums[0] += 0.5 * w[k] * on[k]
                    sums[1] += w[k] * won[k]
                    sums[2] += w[k] * squares[k]
                    slack[k] -= won[k]
        if not product:
            for k in range(n):
                key[at + k] = f[order[start + k]]
                rows[at + k] = k
            if n > one:
                sort_descending(key[at : at + n], rows[at : at + n], b[0][at : at + n], b[1][at : at + n], n)
            for k in range(n):
                sorted_at[start + k] = np.uint64(rows[at + k])
        for k in range(n):
            place = np.uint64(sorted_at[start + k])
            row = order[start + place]
            rows[at + k] = row
            key[at + k] = f[row]
            values[at + k] = value[row]
            active[at + k] = on[place] if several else 0.0
            slacks[at + k] = slack[place] if several else 0.0
    _merge_runs(a, b, run_starts, first, last, offset, band, sums, top)


@compiled
def _copy(a, b, lo, hi):  # type: ignore[no-untyped-def]
    for row in range(np.uint64(a.shape[0])):
        for k in range(lo, hi):
            b[row, k] = a[row, k]


@compiled
def scatter(a, n, active, slack):  # type: ignore[no-untyped-def]
    for k in range(np.uint64(n)):
        row = np.uint64(a[1, k])
        active[row] = a[3, k]
        slack[row] = a[-1, k]


@compiled
def _longest(run_starts, query_runs, first, last):  # type: ignore[no-untyped-def]
    longest = 0
    for q in range(first, last):
        longest = max(longest, run_starts[query_runs[q + 1]] - run_starts[query_runs[q]])
    return longest


@compiled
def add_queries(data, query_runs, first, last, band, sorted_at, active, slack, sums):  # type: ignore[no-untyped-def]
    """Some queries, one after the other; a product has one result, which is ``active`` and ``slack``."""
    run_starts = data[5]
    longest = _longest(run_starts, query_runs, first, last)
    size = 4 if band[2] else 5
    a = np.empty((size, longest))
    b = np.empty((size, longest))
    for q in range(first, last):
        lo, hi = query_runs[q], query_runs[q + 1]
        add_runs(data, lo, hi, band, a, b, 0, True, sorted_at, sums[q])
        scatter(a, run_starts[hi] - run_starts[lo], active, slack)
