"""The files of a new driver, from its name."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import dray
from dray.cli.main import app
from dray.driver_scaffold import Names, ScaffoldError, files_of

DRIVERS = ("fans.example.com", "fan-control.example.com", "9lives.example.com", "class.example.com", "none.example.com")


@pytest.mark.parametrize("driver", DRIVERS)
def test_everything_follows_from_the_name(driver: str) -> None:
    names = Names.of(driver)
    files = files_of(names)
    assert set(files) == {
        "Containerfile",
        "README.md",
        "pyproject.toml",
        f"{names.module}.py",
        f"tests/test_{names.module}.py",
        "deploy/class.yaml",
        "deploy/driver.yaml",
        "deploy/example-pod.yaml",
    }
    for path, text in files.items():
        assert "${" not in text.replace("${PYTHON}", ""), path
        if path.endswith(".py"):
            ast.parse(text)
            assert max(map(len, text.splitlines())) <= 120
    module = files[f"{names.module}.py"]
    assert f"class {names.class_}(driver.Driver)" in module
    assert f'name = "{driver}"' in module
    project = tomllib.loads(files["pyproject.toml"])
    assert project["project"]["scripts"] == {names.project: f"{names.module}:main"}
    assert project["tool"]["pytest"]["ini_options"]["driver_command"] == f"python -m {names.module}"


@pytest.mark.parametrize("driver", DRIVERS)
def test_manifests_are_valid_and_fit_together(driver: str) -> None:
    files = files_of(Names.of(driver))
    objects = [one for path, text in files.items() if path.startswith("deploy/") for one in yaml.safe_load_all(text)]
    assert not [problem for one in objects for problem in dray.validate(one)]
    by_kind = {one["kind"]: one for one in objects}
    account = by_kind["ServiceAccount"]["metadata"]["name"]
    assert by_kind["DaemonSet"]["spec"]["template"]["spec"]["serviceAccountName"] == account
    assert by_kind["ClusterRoleBinding"]["subjects"][0]["name"] == account
    request = by_kind["ResourceClaimTemplate"]["spec"]["spec"]["devices"]["requests"][0]
    assert request["exactly"]["deviceClassName"] == by_kind["DeviceClass"]["metadata"]["name"] == driver


def test_names_that_python_has_already_get_another_module() -> None:
    assert Names.of("class.example.com").module == "class_driver"
    assert Names.of("none.example.com") == Names("none.example.com", "none_driver", "NoneDriver")
    assert Names.of("9lives.example.com").class_ == "Driver9lives"
    assert Names.of("fan-control.example.com") == Names("fan-control.example.com", "fan_control", "FanControl")


@pytest.mark.parametrize(
    "name", ["json", "types", "grpc", "aiohttp", "yaml", "dray", "pytest", "conftest", "test", "on"]
)
def test_names_that_mean_something_else_already_get_another_module(name: str) -> None:
    names = Names.of(f"{name}.example.com")
    assert (names.module, names.project) == (f"{name}_driver", f"{name}-driver")


@pytest.mark.parametrize("name", ["path", "callable", "iterable", "driver", "pathlib"])
def test_a_class_has_the_name_of_nothing_else_in_its_files(name: str) -> None:
    names = Names.of(f"{name}.example.com")
    files = files_of(names)
    for path in (f"{names.module}.py", f"tests/test_{names.module}.py"):
        tree = ast.parse(files[path])
        imports = [one for one in ast.walk(tree) if isinstance(one, ast.Import | ast.ImportFrom)]
        bound = [alias.asname or alias.name for one in imports for alias in one.names]
        bound += [one.name for one in tree.body if isinstance(one, ast.ClassDef)]
        assert bound.count(names.class_) == 1


@pytest.mark.parametrize("driver", ["", "fans", "Fans.example.com", "fans_.example.com", "../x.example.com", "a" * 70])
def test_bad_names_are_refused_with_a_good_one(driver: str, tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match=r"\.example\.com"):
        Names.of(driver)
    done = CliRunner().invoke(app, ["driver", "new", driver, "--dir", str(tmp_path / "x")])
    assert done.exit_code == 2
    assert "is no name for a driver" in done.stderr
    assert not (tmp_path / "x").exists()


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("important")
    for place, why in ((tmp_path, "is not empty"), (tmp_path / "mine", "is a file")):
        done = CliRunner().invoke(app, ["driver", "new", "fans.example.com", "--dir", str(place)])
        assert done.exit_code == 2
        assert why in done.stderr
    done = CliRunner().invoke(app, ["driver", "new", "fans.example.com", "--dir", str(tmp_path / "mine" / "below")])
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr
    assert (tmp_path / "mine").read_text() == "important"
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def test_an_empty_directory_will_do(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["driver", "new", "fans.example.com", "--dir", str(tmp_path)])
    assert done.exit_code == 0
    assert (tmp_path / "fans.py").exists()
