"""What tests of tuning share: a cache of their own, and workers that end with them."""

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and counts from zero; the folder, which need not be there."""
    from irc.runtime import metrics

    folder = tmp_path / "cache"
    monkeypatch.setenv("IRC_CACHE_DIR", str(folder))
    metrics.reset()
    return folder


@pytest.fixture(scope="module")
def workers():
    """Workers, if a test starts some, serve all tests of a file."""
    yield
    from irc.tuning import pool

    pool.close_shared()
