"""The networks by name: each function is registered with its published figures and its groups."""
import collections

from networks.builder import G


N = lambda g: ("N", g.B)
REG, PUBLISHED, GROUPS = {}, {}, collections.defaultdict(list)


def model(name, params=None, macs=None, groups="", **kw):
    """params / macs: the published figures (params exact, macs in units of 1)."""
    def deco(fn):
        REG[name] = lambda o: (lambda g: (fn(g, **kw), g)[1])(G(name, o))
        PUBLISHED[name] = (params, macs)
        for q in groups.split():
            GROUPS[q].append(name)
        return fn
    return deco
