/* Every rank says where it runs; together they integrate 4 / (1 + x^2) from 0 to 1, and rank 0 prints the sum. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const long steps = 1000000;
    char host[256] = "";
    double mine = 0, pi = 0;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host - 1);
    printf("rank %d of %d on %s\n", rank, size, host);
    fflush(stdout);

    for (long i = rank; i < steps; i += size) {
        double x = (i + 0.5) / steps;
        mine += 4 / (1 + x * x) / steps;
    }
    MPI_Allreduce(&mine, &pi, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("pi is approximately %.4f\n", pi);
    MPI_Finalize();
    return 0;
}
