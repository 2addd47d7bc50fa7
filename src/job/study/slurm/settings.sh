# What depends on the cluster: edit this, then run ./submit.sh. ./check.sh checks and queues nothing.
TESSERA=@TESSERA@   # the program; all nodes must see it
VERSION=@VERSION@   # of the program that these scripts are for
CONTAINER=''        # what starts the program, such as 'apptainer exec --nv tessera.sif'; TESSERA is then its path inside
MODULES=''          # loaded before the program, such as 'openmpi/4.1.5 cuda/12.4'
SBATCH_OPTIONS=''   # such as '--account=abc --partition=gpu --constraint=v100-32g'
MPI=pmix            # how srun and the MPI library find each other: srun --mpi=list
MINUTES=30          # of each job, at most
CPUS=@CPUS@         # cores of each rank
DEVICE=@DEVICE@     # cuda: one card for each rank; cpu: none
MODEL=@MODEL@       # a name or a file that all nodes see; empty: each problem's own
DATA=''             # other files that the jobs read, between spaces
OPTIONS='--square'  # more options of tessera bench scaling; the published images of deblur are square
