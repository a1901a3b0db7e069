"Small models for all tests of this folder"

import pytest
from helpers.language_models import made


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def pair(request):
    return made(request.param)


@pytest.fixture(scope="module")
def llama():
    return made()
