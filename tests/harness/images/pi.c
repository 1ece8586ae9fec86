/* Every rank says where it runs; together they integrate 4 / (1 + x^2) from 0 to 1, and rank 0 prints the sum.
   With an argument they do that again and again until rank 0 sees a file of this name. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static double integral(int rank, int size) {
    const long steps = 1000000;
    double mine = 0, sum = 0;
    for (long i = rank; i < steps; i += size) {
        double x = (i + 0.5) / steps;
        mine += 4 / (1 + x * x) / steps;
    }
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

/* Whether rank 0 sees the file. */
static int is_there(const char *file, int rank) {
    int there = rank == 0 && access(file, F_OK) == 0;
    MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return there;
}

int main(int argc, char **argv) {
    char host[256] = "";
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host - 1);
    printf("rank %d of %d on %s\n", rank, size, host);
    fflush(stdout);

    double pi = integral(rank, size);
    if (argc > 1 && !is_there(argv[1], rank)) {
        if (rank == 0) printf("computing until there is %s\n", argv[1]);
        fflush(stdout);
        while (!is_there(argv[1], rank)) {
            usleep(50000);
            pi = integral(rank, size);
        }
    }
    if (rank == 0) printf("pi is approximately %.4f\n", pi);
    MPI_Finalize();
    return 0;
}
