"""Profiles: the shipped ones publish what they promise, and mistakes in one's own are named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dray import validation
from dray.simulation import ProfileError, load_profile, publication, shipped_profiles
from dray.simulation.profile_files import parse_profile


@pytest.mark.parametrize("name", sorted(shipped_profiles()))
def test_everything_that_a_shipped_profile_publishes_is_valid(name: str) -> None:
    profile = load_profile(name)
    node = publication.node(profile, 7)
    made = [node, *publication.slices(profile, node), *publication.shared_slices(profile), *profile.typed_objects()]
    assert {obj.metadata.name: validation.validate(obj) for obj in made} == {obj.metadata.name: [] for obj in made}
    assert profile.description


def test_the_shipped_profiles() -> None:
    assert set(shipped_profiles()) == {"gpu-8", "mig", "gpu-nic", "network-fpga", "cpu-only"}


def test_gpu_8_has_eight_devices_that_say_where_they_are() -> None:
    profile = load_profile("gpu-8")
    node = publication.node(profile, 2)
    (made,) = publication.slices(profile, node)
    assert made.spec.node_name == made.spec.pool.name == "node-2"
    assert [device.name for device in made.spec.devices] == [f"gpu-{index}" for index in range(8)]
    assert made.spec.devices[5].attributes["uuid"].string == "GPU-node-2-5"
    assert [device.attributes["numa"].int_value for device in made.spec.devices] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_partitions_cannot_use_more_than_their_gpu_has() -> None:
    profile = load_profile("mig")
    made = publication.slices(profile, publication.node(profile, 1))
    assert {part.spec.pool.resource_slice_count for part in made} == {len(made)}
    sets = {counter.name: counter for part in made for counter in part.spec.shared_counters}
    for device in (device for part in made for device in part.spec.devices):
        (consumed,) = device.consumes_counters
        for name, counter in consumed.counters.items():
            assert counter.value <= sets[consumed.counter_set].counters[name].value


def test_each_network_card_shares_a_pcie_root_with_two_gpus() -> None:
    profile = load_profile("gpu-nic")
    gpus, cards = publication.slices(profile, publication.node(profile, 1))
    root = "resource.kubernetes.io/pcieRoot"
    by_root = Counter(device.attributes[root].string for device in gpus.spec.devices)
    assert [by_root[card.attributes[root].string] for card in cards.spec.devices] == [2, 2, 2, 2]


def test_network_devices_are_published_once_for_all_nodes_and_taints_in_a_slice_of_their_own() -> None:
    profile = load_profile("network-fpga")
    assert publication.slices(profile, publication.node(profile, 1)) == ()
    devices, taints = publication.shared_slices(profile)
    assert devices.spec.all_nodes
    assert taints.spec.all_nodes
    assert [entry.device for entry in taints.spec.taints] == ["fpga-15"]


def test_large_pools_are_split_into_slices_that_belong_together() -> None:
    text = b"pools: [{driver: d.example.com, devices: [{count: 150, name: 'd-{index}'}]}]"
    profile = parse_profile(text, "text", "many")
    made = publication.slices(profile, publication.node(profile, 1))
    assert [len(part.spec.devices) for part in made] == [64, 64, 22]
    assert {part.spec.pool.resource_slice_count for part in made} == {3}
    assert len({part.metadata.name for part in made}) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pools: ]", "p:1: not valid YAML"),
        ("- a", "a profile is one YAML document"),
        ("a: 1\n---\nb: 2", "a profile is one YAML document"),
        ("nodes: {}", "nodes: unknown field"),
        ("node: {capacity: {cpu: lots}}", "node.capacity"),
        ("pools: [{driver: d.io, devices: [{count: 2, name: 'x-{slot}'}]}]", r"devices\[0\]: \{slot\} is not known"),
        ("pools: [{driver: d.io, devices: [{count: 2, name: x}]}]", "spec.devices.*Duplicate value"),
        ("pools: [{driver: d.io, devices: [{name: x, colour: red}]}]", r"devices\[0\]: colour: unknown field"),
        ("pools: [{driver: 'Bad Driver', devices: [{name: x}]}]", "spec.driver"),
        ("pools: [{driver: d.io, allNodes: true, devices: [{name: x}]}]", "a pool for several nodes needs a name"),
        ("pools: [{driver: d.io, name: p, allNodes: true, devices: [{name: '{node}'}]}]", r"\{node\} is not known"),
        ("pods: {runSeconds: -1}", "pods.runSeconds: must not be negative"),
        ("pods: {exitCode: 300}", "pods.exitCode: must be from 0 to 255"),
        ("objects: [{kind: Nonsense, apiVersion: v1}]", "Nonsense"),
    ],
)
def test_a_mistake_is_reported_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ProfileError, match=why):
        parse_profile(text.encode(), "p", "p")


def test_profiles_come_from_files_too(tmp_path: Path) -> None:
    file = tmp_path / "tpu.yaml"
    file.write_text(
        "node: {name: 'tpu-{number}'}\npools: [{driver: tpu.example.com, devices: [{count: 4, name: 't-{index}'}]}]"
    )
    profile = load_profile(str(file))
    assert (profile.name, publication.node(profile, 12).metadata.name) == ("tpu", "tpu-12")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gpu-9", "there is no profile 'gpu-9'. Give one of cpu-only, gpu-8"),
        ("no/such.yaml", "cannot be read: no such file"),
    ],
)
def test_a_profile_that_is_not_there(name: str, why: str) -> None:
    with pytest.raises(ProfileError, match=why):
        load_profile(name)


def test_node_addresses_carry_the_number_of_the_node() -> None:
    profile = parse_profile(b"pools: [{driver: d.io, devices: [{name: 'of-{number}'}]}]", "p", "p")
    for number in (1, 255, 256, 65536, 1_000_000):
        node = publication.node(profile, number)
        assert publication.slices(profile, node)[0].spec.devices[0].name == f"of-{number}"
