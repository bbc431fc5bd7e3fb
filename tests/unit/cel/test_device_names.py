"""Names with and without the driver's domain mean the same; where both stand, the explicit one counts."""

import pytest

from dray import cel

DRIVER = "gpu.example.com"


@pytest.mark.req("4381-22", "4381-23", "4381-82")
@pytest.mark.parametrize("order", [("model", f"{DRIVER}/model"), (f"{DRIVER}/model", "model")])
def test_the_name_with_the_domain_counts(order: tuple[str, str]) -> None:
    texts = {"model": "short", f"{DRIVER}/model": "explicit"}
    device = {"name": "d", "attributes": {name: {"string": texts[name]} for name in order}}
    selector = cel.compile(f'device.attributes["{DRIVER}"].model == "explicit"')
    assert selector.evaluate(device, driver=DRIVER)
