# Read by check.sh, job.sh and submit.sh.
. ./settings.sh

# Loads the modules; prints the first one that is missing.
load_modules() {
  [ -n "$MODULES" ] || return 0
  type module >/dev/null 2>&1 || { echo "MODULES of settings.sh names $MODULES, but there is no command module here"; return 1; }
  module purge >/dev/null 2>&1
  for name in $MODULES; do
    module load "$name" >/dev/null 2>&1
    case ":$LOADEDMODULES:" in
      *":$name:"*|*":$name/"*) ;;
      *) echo "the module $name cannot be loaded; MODULES of settings.sh names it, module avail lists what there is"; return 1 ;;
    esac
  done
}

# The options of sbatch for one line of points: one process per card.
batch_options() {
  echo "--job-name=tessera-$1-$2-$3 --nodes=$4 --ntasks-per-node=$5 --cpus-per-task=$CPUS --time=$MINUTES --output=results/$1-$2-$3.log"
  [ "$DEVICE" = cpu ] || echo "--gres=gpu:$5"
  echo "$SBATCH_OPTIONS"
}
