/* Times operations in batches, as `bench/harness` does for programs in Rust, and prints the same
 * results. */

#ifndef HARNESS_H_
#define HARNESS_H_

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* Batches before the timed ones. */
#define WARM_UP 5
#define MAX_BATCHES 1000
#define MAX_THREADS 2

/* Something to measure. */
struct bench_case {
  const char* name;
  /* Does so many operations in a row. */
  void (*run)(uint64_t operations);
  /* In a batch: some 15 to 30 KiB of events, so that a batch fits into the library's memory. */
  uint64_t operations;
  /* Trace events of one operation. */
  uint64_t events;
};

/* How often and how densely to measure. */
struct bench_plan {
  int batches;
  int pause_us;
  int threads;
};

/* ns per operation of each batch. */
struct bench_samples {
  double wall[MAX_BATCHES];
  double cpu[MAX_BATCHES];
};

struct bench_thread {
  const struct bench_case* what;
  struct bench_plan plan;
  int index;
  atomic_int* arrived;
  struct bench_samples samples;
};

static inline double bench_now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Keeps this thread on one CPU, counted from the last. */
static inline void bench_pin(int index) {
  int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpus - 1 - index % cpus, &set);
  sched_setaffinity(0, sizeof set, &set);
}

/* Lets all threads begin a batch at the same time. They spin, because a batch is shorter than
 * waking a thread. */
static inline void bench_meet(atomic_int* arrived, int threads) {
  int before = atomic_fetch_add(arrived, 1);
  int all = (before / threads + 1) * threads;
  for (int spins = 1; atomic_load(arrived) < all; spins++) {
    if (spins % 2000 == 0) sched_yield();
  }
}

static void* bench_thread_main(void* argument) {
  struct bench_thread* self = argument;
  uint64_t operations = self->what->operations;
  bench_pin(self->index);
  for (int batch = -WARM_UP; batch < self->plan.batches; batch++) {
    bench_meet(self->arrived, self->plan.threads);
    double cpu = bench_now(CLOCK_THREAD_CPUTIME_ID);
    double wall = bench_now(CLOCK_MONOTONIC);
    self->what->run(operations);
    wall = bench_now(CLOCK_MONOTONIC) - wall;
    cpu = bench_now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    if (batch >= 0) {
      self->samples.wall[batch] = wall / (double)operations;
      self->samples.cpu[batch] = cpu / (double)operations;
    }
    usleep((useconds_t)self->plan.pause_us);
  }
  return NULL;
}

/* Measures a case and prints its line; returns how many events that recorded. */
static inline uint64_t bench_measure(const struct bench_case* what, struct bench_plan plan) {
  static struct bench_thread threads[MAX_THREADS];
  pthread_t handles[MAX_THREADS];
  atomic_int arrived = 0;
  CHECK(plan.batches > 0 && plan.batches <= MAX_BATCHES && plan.threads <= MAX_THREADS);
  for (int i = 0; i < plan.threads; i++) {
    threads[i] = (struct bench_thread){.what = what, .plan = plan, .index = i, .arrived = &arrived};
    CHECK(pthread_create(&handles[i], NULL, bench_thread_main, &threads[i]) == 0);
  }
  for (int i = 0; i < plan.threads; i++) pthread_join(handles[i], NULL);

  printf("{\"case\": \"%s\", \"threads\": %d, ", what->name, plan.threads);
  for (int is_cpu = 0; is_cpu < 2; is_cpu++) {
    printf("\"%s\": ", is_cpu ? "cpu" : "wall");
    for (int i = 0; i < plan.threads * plan.batches; i++) {
      const struct bench_samples* samples = &threads[i / plan.batches].samples;
      const double* values = is_cpu ? samples->cpu : samples->wall;
      printf("%c%.3f", i ? ',' : '[', values[i % plan.batches]);
    }
    printf("]%s", is_cpu ? "}\n" : ", ");
  }
  return (uint64_t)plan.threads * (uint64_t)(plan.batches + WARM_UP) * what->operations * what->events;
}

#endif
