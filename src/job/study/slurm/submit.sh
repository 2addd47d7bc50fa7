#!/bin/bash -l
# Runs the checks and then queues a job for each line of points; queues nothing if something is missing. Run again, it leaves out the points that have
# a result or a job.
cd "$(dirname "$0")" || exit 1
./check.sh || { echo 'submit: nothing was queued' >&2; exit 1; }
. ./common.sh
touch queued
while read -r problem size ranks nodes each; do
  name=$problem-$size-$ranks
  [ ! -s "results/$name.jsonl" ] || { echo "$name: has a result"; continue; }
  id=$(awk -v name="$name" '$2 == name { id = $1 } END { print id }' queued)
  [ -z "$id" ] || [ -z "$(squeue -h -j "$id" 2>/dev/null </dev/null)" ] || { echo "$name: job $id"; continue; }
  id=$(sbatch --parsable $(batch_options "$problem" "$size" "$ranks" "$nodes" "$each") job.sh "$problem" "$size" "$ranks" </dev/null) ||
    { echo "submit: sbatch refused $name; the jobs before it are queued" >&2; exit 1; }
  echo "${id%%;*} $name" >> queued
  echo "$name: job ${id%%;*}"
done < points
