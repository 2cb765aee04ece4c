"""What the suite demands of itself: in CI no test may skip for want of a part, and a warning is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).with_name("conftest.py").read_text(encoding="utf-8")

MISSING_IN_A_TEST = "import pytest\ndef test_it():\n    pytest.skip('missing: nginx')\n"
MISSING_BY_MARK = "import pytest\n@pytest.mark.skipif(True, reason='missing: nginx')\ndef test_it(): ...\n"
MISSING_IN_A_FIXTURE = (
    "import pytest\n@pytest.fixture\ndef nginx():\n    pytest.skip('missing: nginx')\ndef test_it(nginx): ...\n"
)
MISSING_IN_A_MODULE = "import pytest\npytest.skip('missing: nginx', allow_module_level=True)\n"
MISSING_IMPORT = "import pytest\npytest.importorskip('nginx_of_python')\n"
OTHER_REASON = "import pytest\ndef test_it():\n    pytest.skip('not on this platform')\n"


def run(pytester: pytest.Pytester, source: str) -> pytest.RunResult:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(source)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider")


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        pytest.param(MISSING_IN_A_TEST, "failed", id="test"),
        pytest.param(MISSING_BY_MARK, "errors", id="mark"),
        pytest.param(MISSING_IN_A_FIXTURE, "errors", id="fixture"),
        pytest.param(MISSING_IN_A_MODULE, "errors", id="module"),
        pytest.param(MISSING_IMPORT, "errors", id="import"),
    ],
)
def test_in_ci_a_test_that_skips_for_a_missing_part_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, source: str, outcome: str
) -> None:
    monkeypatch.setenv("CI", "true")
    result = run(pytester, source)
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(["*CI must have every part.*nginx*"])


@pytest.mark.parametrize("source", [MISSING_IN_A_TEST, MISSING_BY_MARK, MISSING_IN_A_MODULE, MISSING_IMPORT])
def test_elsewhere_a_test_may_skip_for_a_missing_part(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.delenv("CI", raising=False)
    run(pytester, source).assert_outcomes(skipped=1)


def test_in_ci_a_test_may_skip_for_another_reason(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    run(pytester, OTHER_REASON).assert_outcomes(skipped=1)
