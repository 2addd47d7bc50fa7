#!/bin/bash -l
# Checks all that the jobs need: Slurm, modules, program, models, data, and that Slurm could run every job. Queues nothing.
# Prints a line for each thing that is missing; status 1 if there is one.
cd "$(dirname "$0")" || exit 1
. ./common.sh
missing=0
miss() {
  echo "check: $*" >&2
  missing=1
}
for name in sbatch srun sinfo; do
  command -v "$name" >/dev/null || miss "there is no $name here; run this on a login node of the cluster"
done
said=$(load_modules) && load_modules || miss "$said"
mkdir -p results 2>/dev/null && [ -w results ] || miss "the folder $PWD/results cannot be written"
for file in $DATA; do
  [ -r "$file" ] || miss "$file: no such file; DATA of settings.sh names it"
done

if ! said=$($CONTAINER "$TESSERA" --version 2>&1); then
  miss "${CONTAINER:+$CONTAINER }$TESSERA does not run: $(echo "$said" | tail -n 1)"
else
  [ "$said" = "$VERSION" ] || miss "$TESSERA is version $said, and these scripts are for $VERSION; write them again"
  if awk '$3 > 1 { several = 1 } END { exit !several }' points; then
    $CONTAINER "$TESSERA" info 2>&1 | grep -q 'MPI: module found' || miss "$TESSERA was built without MPI; build it where an MPI library is installed"
    command -v srun >/dev/null && ! srun --mpi=list 2>&1 | grep -qw "$MPI" &&
      miss "srun has no --mpi=$MPI; MPI of settings.sh names it, srun --mpi=list lists what there is"
  fi
  for problem in $(awk '{ print $1 }' points | sort -u); do
    said=$($CONTAINER "$TESSERA" plan reconstruct results/check.npy --problem "$problem" --size 32 ${MODEL:+--model "$MODEL"} --device cpu --quiet 2>&1) ||
      miss "$problem: $(echo "$said" | tail -n 1)"
  done
fi

if command -v sbatch >/dev/null && command -v sinfo >/dev/null; then
  if ! said=$(sinfo -h -o %G 2>&1); then
    miss "Slurm does not answer: $(echo "$said" | tail -n 1)"
  elif [ "$DEVICE" != cpu ] && ! echo "$said" | grep -q gpu; then
    miss "no node of this cluster has cards (sinfo -o %G)"
  else
    while read -r problem size ranks nodes each; do
      said=$(sbatch --test-only $(batch_options "$problem" "$size" "$ranks" "$nodes" "$each") job.sh 2>&1 </dev/null) ||
        miss "$problem $size on $ranks ranks: $(echo "$said" | tail -n 1)"
    done < points
  fi
fi
[ "$missing" = 0 ] && echo "check: all is there for $(wc -l < points) jobs"
exit "$missing"
