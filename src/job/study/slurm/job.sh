#!/bin/bash -l
# job.sh PROBLEM SIZE RANKS: one point of the study, as a job of Slurm. One process per card; the result has its name when it is whole.
cd "${SLURM_SUBMIT_DIR:-.}" || exit 1
. ./common.sh
said=$(load_modules) && load_modules || { echo "job: $said" >&2; exit 1; }
result=results/$1-$2-$3
srun --mpi="$MPI" --cpus-per-task="$CPUS" --kill-on-bad-exit=1 $CONTAINER "$TESSERA" bench scaling --problems "$1" --sizes "$2" --ranks "$3" \
  ${MODEL:+--model "$MODEL"} --device "$DEVICE" --json "$result.part" $OPTIONS || exit 1
mv "$result.part" "$result.jsonl"
