#!/bin/sh
# The benchmark of docs/bench.md: one JSON file a workload in the folder given (benches/results). Needs a quiet machine.
# scripts/bench.sh FOLDER [NAME...] runs only the lines whose first word is among the names.
set -eu
cd "$(dirname "$0")/.."
folder="${1:-benches/results}"
[ $# -gt 0 ] && shift
mkdir -p "$folder"

# name                arguments of `privet bench`
runs='
relu                  relu-1000000
matmul                matmul-1024
mlp-128               mlp --batch 128
lenet-1               lenet --batch 1
lenet-128             lenet --batch 128
alexnet-cifar-128     alexnet-cifar --batch 128
vgg16-cifar-8         vgg16-cifar --batch 8
squeezenet-1          squeezenet --batch 1
resnet18-1            resnet18 --batch 1
resnet18-1-32         resnet18 --batch 1 --bits 32 --fraction 10
resnet50-1            resnet50 --batch 1
vgg16-1               vgg16 --batch 1
lenet-128-wan         lenet --batch 128 --network wan
lenet-128-orca-wan    lenet --batch 128 --network rtt=60ms,bandwidth=293Mbit/s
vgg16-cifar-8-wan     vgg16-cifar --batch 8 --network wan
'
target/release/privet env --json >"$folder/machine.json"
echo "$runs" | while read -r name arguments; do
    [ -n "$name" ] || continue
    case " ${*:-$name} " in *" $name "*) ;; *) continue ;; esac
    echo "$name: privet bench $arguments" >&2
    # shellcheck disable=SC2086  # several arguments
    target/release/privet bench $arguments --json </dev/null >"$folder/$name.json.new"
    mv "$folder/$name.json.new" "$folder/$name.json"
done
python3 scripts/bench_table.py "$folder"
