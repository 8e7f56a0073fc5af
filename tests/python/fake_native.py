"""A stand-in for the compiled extension: plans that mirror the graph and are evaluated in fixed point.

It lets the Python side be tested without a build; the extension has its own tests.
"""

from __future__ import annotations

import json
import types

import torch
from safetensors.torch import load, save

from privet.errors import PrecisionError, SessionError
from privet.evaluate import evaluate
from privet.graph import Graph

FRACTION = 16
LIMIT = 100.0


def network(text):
    if text == "moon":
        raise ValueError("`moon` is not a network")
    return text


def lower(graph_json, params, precision_json, protocol, security, aim, parties=None, set=()):
    graph = Graph.from_json(graph_json)
    precision = json.loads(precision_json)
    if precision.get("bits", 64) < 32:
        raise PrecisionError("layer 'conv1' needs 33 bits")
    nodes = []
    for node in graph.nodes:
        op = {"kind": {"parameter": "weight"}.get(node.kind, node.kind)}
        if node.kind == "input":
            op |= {"name": node.op["name"], "owner": "data-owner", "limit": LIMIT}
        nodes.append({"op": op, "inputs": node.inputs, "ty": {"shape": node.shape}, "layer": node.layer})
    plan = {"name": graph.name, "batch": graph.batch, "nodes": nodes, "graph": json.loads(graph_json)}
    weights = {k: round_to(v.double()) for k, v in load(params).items()}
    return json.dumps(plan), save(weights), ["mirrored the graph", f"for {aim[0]}, {aim[1]} bytes of keys"]


def round_to(t):
    return torch.round(t * 2**FRACTION) / 2**FRACTION


def interpret(plan_json, params, inputs, all_values, beyond=False):
    graph = Graph.from_json(json.dumps(json.loads(plan_json)["graph"]))
    seen = {}
    outputs = evaluate(graph, load(params), load(inputs), see=lambda i, v: seen.update({f"#{i}": round_to(v)}))
    found = {o.name: round_to(v) for o, v in zip(graph.outputs, outputs, strict=True)}
    if all_values:
        found |= seen
    return save({k: v.contiguous().clone() for k, v in found.items()})


def protocols():
    return [
        {
            "name": "fss",
            "about": "two parties and a dealer",
            "collusion": "any two of the three together learn everything",
            "parties": (2, 2),
            "dealer": True,
            "dealer_where": None,
            "uses_up": "keys",
            "streams": True,
            "trains": True,
            "withstands": ["semi-honest"],
        },
        {
            "name": "rep3",
            "about": "three parties of which two are honest",
            "collusion": "any two of the three together learn everything",
            "parties": (3, 3),
            "dealer": False,
            "dealer_where": None,
            "uses_up": None,
            "streams": False,
            "trains": True,
            "withstands": ["malicious", "semi-honest"],
        },
        {
            "name": "semi2k",
            "about": "two to eight parties, of which all but one may collude",
            "collusion": "all parties but one together learn nothing of the others' data",
            "parties": (2, 8),
            "dealer": False,
            "dealer_where": 'helper = "dealer"',
            "uses_up": "records",
            "streams": False,
            "trains": True,
            "withstands": ["semi-honest"],
        },
    ]


def check(graph_json):
    return [
        {"op": n.op["name"], "layer": n.layer, "source": n.source, "what": "nothing", "remedy": "another way"}
        for n in Graph.from_json(graph_json).unsupported()
    ]


def estimate(plan_json, network, protocol, security, local, parties=None, set=()):
    plan = json.loads(plan_json)
    cost = {"wire_bytes": 1500, "rounds": 2, "key_bytes": 3_000_000}
    body = {
        "protocol": network,
        "batch": plan["batch"],
        "layers": [{"layer": "a", "cost": cost, "seconds": 0.25}],
        "nodes": [{"layer": "a", "op": "relu"}, {"layer": "a", "op": "truncate"}, {"layer": "a", "op": "relu"}],
        "total": cost,
        "seconds": 0.25,
        "memory_bytes": 10**9,
    }
    return json.dumps(body)


class Client:
    """Runs the plan in the clear; keys are counted."""

    def __init__(self, plan, params, protocol, security):
        self.plan, self.params, self.keys, self.open, self.runs = plan, params, 0, True, 0
        self.protocol, self.security, self.prepared = protocol, security, 0

    @staticmethod
    def connect(config, plan, params, protocol="fss", security="semi-honest"):
        return Client(plan, params, protocol, security)

    def prepare(self, runs, checks=0, plan="run"):
        self.keys += runs
        self.prepared += 1

    def run(self, inputs, plan="run"):
        if self.protocol == "fss":
            if self.keys == 0:
                raise SessionError("no keys are left")
            self.keys -= 1
        self.runs += 1
        plan = json.loads(self.plan)
        report = {
            "version": 2,
            "plan": plan["name"],
            "plan_hash": "00",
            "protocol": self.protocol,
            "security": self.security,
            "transport": "TLS",
            "batch": plan["batch"],
            "parties": [{"place": "party:0", "peak_rss_bytes": 5 + self.runs, "bytes_sent": 7}],
            "layers": [{"layer": "a", "ops": "relu", "seconds": 0.5, "bytes_sent": 7, "rounds": 2, "key_bytes": 9}],
            "totals": {"online_s": 0.5, "offline_s": 1.0, "bytes_sent": 7, "rounds": 2, "key_bytes": 9},
            "openings": {
                "masked": 3,
                "masked_bits": 64,
                "revealed": [{"name": "output", "to": "receiver", "shape": [1], "bits": 64}],
            },
        }
        return interpret(self.plan, self.params, inputs, False), json.dumps(report)

    def close(self):
        self.open = False


def module():
    """A module object with the contract of ``_native.pyi``."""
    fake = types.ModuleType("privet._native")
    for thing in (lower, interpret, check, network, estimate, protocols, Client):
        setattr(fake, thing.__name__, thing)
    return fake
