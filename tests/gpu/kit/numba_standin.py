"""Stand-in for numba where the real one does not import: runs as plain Python."""
__version__ = "0.65.0"
prange = range


def _deco(*args, **kwargs):
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda f: f


jit = njit = vectorize = guvectorize = stencil = generated_jit = _deco


def get_num_threads():
    return 1


def set_num_threads(n):
    pass


def __getattr__(name):  # numba.int64 and the like, used in signatures only
    if name.startswith("__"):
        raise AttributeError(name)
    return _deco
