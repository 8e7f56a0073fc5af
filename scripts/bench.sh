#!/bin/sh
# The benchmark of docs/bench.md: one JSON file a workload in the folder given (benches/results). Needs a quiet machine.
# scripts/bench.sh FOLDER [NAME...] runs only what is among the names: `lenet-128` (fss), `rep3-lenet-128-malicious`.
set -eu
cd "$(dirname "$0")/.."
folder="${1:-benches/results}"
[ $# -gt 0 ] && shift
mkdir -p "$folder"

# name                arguments of `privet bench`
fss='
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
gelu-100000           gelu-100000
softmax-1000x64       softmax-64 --batch 1000
softmax-1536x128      softmax-128 --batch 1536
train-mlp-128         mlp --train --batch 128
train-lenet-128       lenet --train --batch 128
train-cnn2-100        cnn2 --train --batch 100
bert-base-1           bert-base --batch 1 --runs 1
bert-base-1-wan       bert-base --batch 1 --runs 1 --network wan --max-key-bytes 1430MiB
bert-base-1-wan-plan  bert-base --batch 1 --runs 3 --compile-for wan --max-key-bytes 1430MiB
bert-base-1-one_ulp   bert-base --batch 1 --runs 3 --compile-for wan --max-key-bytes 1430MiB --rounding one_ulp
bert-base-1-rounds    bert-base --batch 1 --runs 5 --compile-for rtt=20ms,bandwidth=10Gbit/s --max-key-bytes 1500MB
'
# Each against semi-honest and against malicious parties. Those called falcon are the networks that Falcon measures, at its
# 32 bits, with the fraction bits that keep the classes of float64.
rep3='
relu                  relu-1000000
mlp-128               mlp --batch 128
lenet-128             lenet --batch 128
lenet-128-wan         lenet --batch 128 --network wan
gelu-100000           gelu-100000
exp-100000            exp-100000
softmax-1000x64       softmax-64 --batch 1000
softmax-1536x128      softmax-128 --batch 1536
train-mlp-128         mlp --train --batch 128
train-lenet-128       lenet --train --batch 128
bert-base-1           bert-base --batch 1 --runs 1
falcon-a              network-a --batch 128 --bits 32 --fraction 13
falcon-b              network-b --batch 128 --bits 32 --fraction 13
falcon-c              network-c --batch 128 --bits 32 --fraction 13
falcon-lenet          lenet --batch 128 --bits 32 --fraction 13
falcon-alexnet-cifar  alexnet-cifar --batch 128 --bits 32 --fraction 13
falcon-vgg16-cifar    vgg16-cifar --batch 128 --bits 32 --fraction 11 --weight-fraction 14 --runs 1
falcon-alexnet-tiny   alexnet-tiny --batch 128 --bits 32 --fraction 13 --runs 1
falcon-vgg16-tiny     vgg16-tiny --batch 128 --bits 32 --fraction 11 --weight-fraction 14 --runs 1
'

# Among parties who prepare for themselves: as many as stand there, two otherwise. Those called owned have a party own the weights.
semi2k='
relu-100000           relu-100000
relu-100000-3         relu-100000 --parties 3
relu-100000-5         relu-100000 --parties 5
relu-100000-wan       relu-100000 --network wan --runs 3 --set transfers=ferret
matmul-1024           matmul-1024 --runs 3
matmul-1024-owned     matmul-1024 --runs 3 --model-owner party:1
lenet-1               lenet --batch 1
lenet-1-owned         lenet --batch 1 --model-owner party:1
lenet-1-wan           lenet --batch 1 --network wan --runs 3 --set transfers=ferret
lenet-128             lenet --batch 128 --runs 3
lenet-128-owned       lenet --batch 128 --runs 3 --model-owner party:1
resnet18-1            resnet18 --batch 1 --runs 1
resnet18-1-owned      resnet18 --batch 1 --runs 1 --model-owner party:1
train-mlp-128         mlp --train --batch 128 --runs 3
train-lenet-128       lenet --train --batch 128 --runs 1
lenet-128-wan         lenet --batch 128 --network wan --runs 1 --set transfers=ferret
bert-base-1           bert-base --batch 1 --runs 1
'
heot='
relu-1000000          relu-1000000 --bits 37 --fraction 12
lenet-1               lenet --batch 1
lenet-1-wan           lenet --batch 1 --network wan --runs 3
lenet-128             lenet --batch 128 --runs 3
lenet-128-37          lenet --batch 128 --bits 37 --fraction 12 --runs 3
lenet-128-one_ulp     lenet --batch 128 --bits 37 --fraction 12 --rounding one_ulp --runs 3
squeezenet-1          squeezenet --batch 1 --bits 37 --fraction 12 --runs 3
squeezenet-1-one_ulp  squeezenet --batch 1 --bits 37 --fraction 12 --rounding one_ulp --runs 3
squeezenet-1-wan      squeezenet --batch 1 --bits 37 --fraction 12 --runs 1 --network rtt=40ms,bandwidth=400Mbit/s
gelu-1000             gelu-1000 --runs 3
softmax-128-1536      softmax-128 --batch 1536 --bits 37 --fraction 12 --runs 3
resnet50-1            resnet50 --batch 1 --bits 37 --fraction 12 --runs 1
bert-small-1          bert-small --batch 1 --bits 37 --fraction 12 --runs 5
bert-base-1           bert-base --batch 1 --bits 37 --fraction 12 --runs 1
'

# run WANTED NAME ARGUMENT...: one workload, unless names were given and NAME is not among them.
run() {
    wanted="$1" file="$2"
    shift 2
    case " ${wanted:-$file} " in *" $file "*) ;; *) return 0 ;; esac
    echo "$file: privet bench $*" >&2
    target/release/privet bench "$@" --json </dev/null >"$folder/$file.json.new"
    mv "$folder/$file.json.new" "$folder/$file.json"
}

target/release/privet env --json >"$folder/machine.json"
# shellcheck disable=SC2086  # several arguments
{
    echo "$fss" | while read -r name arguments; do
        [ -z "$name" ] || run "$*" "$name" $arguments
    done
    echo "$rep3" | while read -r name arguments; do
        [ -n "$name" ] || continue
        for security in semi-honest malicious; do
            run "$*" "rep3-$name-$security" $arguments --protocol rep3 --security "$security"
        done
    done
    echo "$semi2k" | while read -r name arguments; do
        [ -z "$name" ] || run "$*" "semi2k-$name" $arguments --protocol semi2k
    done
    echo "$heot" | while read -r name arguments; do
        [ -z "$name" ] || run "$*" "heot-$name" $arguments --protocol heot
    done
}
python3 scripts/bench_table.py "$folder"
