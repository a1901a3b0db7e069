"""The two searches of the package kmedoids that benchnb calls, for pages: that package
is compiled and has no wheel for browsers. Both find the same medoids as it does."""

from types import SimpleNamespace

import numpy as np


def seed_words(seed):
    "Eight words of 32 bits, the key, from a small number (a step of PCG for each)"
    words, state, mask = [], seed, 2**64 - 1
    for _ in range(8):
        state = (state * 6364136223846793005 + 11634580027462260723) & mask
        x, turn = ((state >> 18 ^ state) >> 27) & 0xFFFFFFFF, state >> 59
        words.append((x >> turn | x << (32 - turn)) & 0xFFFFFFFF)
    return words


def chacha(seed, count):
    "At least so many random words of ChaCha with twelve rounds"
    blocks = -(-count // 16)
    start = np.zeros((16, blocks), np.uint32)
    start[:4] = np.array([[0x61707865], [0x3320646E], [0x79622D32], [0x6B206574]])
    start[4:12] = np.array(seed_words(seed))[:, np.newaxis]
    start[12] = np.arange(blocks)
    x = start.copy()

    def turned(word, by):
        return word << np.uint32(by) | word >> np.uint32(32 - by)

    columns = [(n, n + 4, n + 8, n + 12) for n in range(4)]
    diagonals = [
        (n, 4 + (n + 1) % 4, 8 + (n + 2) % 4, 12 + (n + 3) % 4) for n in range(4)
    ]
    for _ in range(6):
        for a, b, c, d in columns + diagonals:
            for left, right in ((16, 12), (8, 7)):
                x[a] += x[b]
                x[d] = turned(x[d] ^ x[a], left)
                x[c] += x[d]
                x[b] = turned(x[b] ^ x[c], right)
    return (x + start).T.ravel()


def shuffled(count, seed):
    "The order in which the points are tried"
    words, order = iter(chacha(seed, 2 * count + 16).tolist()), np.arange(count)
    for i in range(count):
        high, low = divmod(next(words) * (count - i), 2**32)
        if low > 2**32 - (count - i):
            high += low + (next(words) * (count - i) >> 32) >= 2**32
        order[[i, i + high]] = order[[i + high, i]]
    return order


class Search:
    "Medoids, and of each point the nearest and the second nearest of them"

    def __init__(self, distance, medoids):
        self.distance, self.medoids = distance, np.array(medoids, dtype=np.int64)
        self.points = np.arange(len(distance))
        self.assign()

    def assign(self):
        found = self.distance[:, self.medoids]
        found[self.medoids, np.arange(len(self.medoids))] = -1
        order = np.argsort(found, axis=1, kind="stable")[:, :2]
        self.near, second = order.T
        self.first, self.second = (
            self.distance[self.points, self.medoids[place]].astype(np.float64)
            for place in (self.near, second)
        )
        self.first[self.medoids] = 0
        self.loss = np.cumsum(self.first)[-1]
        size, gap = len(self.medoids), self.second - self.first
        self.removal = np.bincount(self.near, gap, minlength=size)

    def best_swap(self, j):
        "The change of the loss if point j replaces a medoid, and which one"
        new = self.distance[:, j].astype(np.float64)
        closer = new < self.first
        less = np.where(closer, self.first, np.minimum(new, self.second)) - self.second
        shares = np.concatenate([self.removal, less])
        places = np.append(np.arange(len(self.removal)), self.near).astype(np.intp)
        losses = np.bincount(places, shares, minlength=len(self.removal))
        place = losses.argmin()
        gain = np.cumsum(np.where(closer, new - self.first, 0))[-1]
        return losses[place] + gain, place

    def swap(self, place, j):
        self.medoids[place] = j
        self.assign()


def fasterpam(diss, medoids, random_state, max_iter=100, n_cpu=1):
    "Every swap that helps is made, the points tried in random order"
    found, last = Search(diss, medoids), -1
    order = shuffled(len(diss), random_state)
    for _ in range(max_iter):
        before = found.loss
        for j in order:
            if j == last:
                break
            if j in found.medoids:
                continue
            change, place = found.best_swap(j)
            if change < 0:
                found.swap(place, j)
                last = j
        if found.loss >= before:
            break
    return SimpleNamespace(medoids=found.medoids, loss=found.loss)


def fastpam1(diss, medoids, max_iter=100):
    "The best swap is made"
    found = Search(diss, medoids)
    for _ in range(max_iter):
        free = np.setdiff1d(found.points, found.medoids)
        swaps = [(*found.best_swap(j), j) for j in free]
        change, place, j = min(swaps, key=lambda swap: swap[0], default=(0, 0, 0))
        if change >= 0:
            break
        before = found.loss
        found.swap(place, j)
        if found.loss >= before:
            break
    return SimpleNamespace(medoids=found.medoids, loss=found.loss)
