import pytest

from tests.tui.rig import WIDTHS


@pytest.fixture(params=WIDTHS)
def width(request):
    return request.param
