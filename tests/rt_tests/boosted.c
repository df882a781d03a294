/* What /proc shows of threads: fields 18 (priority), 40 (rt_priority) and 41 (policy) of task/TID/stat, while priorities are inherited and
   afterwards. Prints the same on Linux and on Skink. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct actor {
    const char *name;
    int policy, priority;
    pthread_mutex_t *holds, *wants;
    sem_t go;
    volatile int tid;
    pthread_t thread;
};

static pthread_mutex_t one, two;

static void *act(void *argument) {
    struct actor *actor = argument;
    if (actor->holds) pthread_mutex_lock(actor->holds);
    actor->tid = syscall(SYS_gettid);
    sem_wait(&actor->go);
    if (actor->wants) pthread_mutex_lock(actor->wants);
    if (actor->wants) pthread_mutex_unlock(actor->wants);
    if (actor->holds) pthread_mutex_unlock(actor->holds);
    sem_wait(&actor->go);
    return NULL;
}

static void begin(struct actor *actor) {
    struct sched_param parameters = {actor->priority};
    pthread_attr_t attributes;
    sem_init(&actor->go, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, actor->policy);
    pthread_attr_setschedparam(&attributes, &parameters);
    if (pthread_create(&actor->thread, &attributes, act, actor)) printf("no thread\n");
    while (!actor->tid) usleep(1000);
    usleep(20000);
}

static void show(const char *when, const struct actor *actor) {
    char path[64], text[1024] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", actor->tid);
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s %s: gone\n", when, actor->name);
        return;
    }
    fread(text, 1, sizeof text - 1, file);
    fclose(file);
    char *field = strrchr(text, ')') + 2;
    printf("%s %s: id %d", when, actor->name, atoi(text) == actor->tid);
    for (int number = 3; field && number <= 41; number++, field = strchr(field, ' ') + 1)
        if (number == 18 || number == 40 || number == 41) printf(" %d", atoi(field));
    printf("\n");
}

static int threads(void) {
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) count += entry->d_name[0] != '.';
    if (folder) closedir(folder);
    return count;
}

int main(void) {
    static struct actor low = {.name = "low", .policy = SCHED_OTHER, .holds = &one};
    static struct actor middle = {.name = "middle", .policy = SCHED_RR, .priority = 10, .holds = &two, .wants = &one};
    static struct actor high = {.name = "high", .policy = SCHED_FIFO, .priority = 50, .wants = &two};
    struct actor *all[] = {&low, &middle, &high};
    pthread_mutexattr_t attributes;
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&one, &attributes);
    pthread_mutex_init(&two, &attributes);
    for (int i = 0; i < 3; i++) begin(all[i]);
    printf("threads %d\n", threads());
    for (int i = 0; i < 3; i++) show("first", all[i]);
    sem_post(&middle.go);
    usleep(20000);
    show("middle waits", &low);
    sem_post(&high.go);
    usleep(20000);
    for (int i = 0; i < 3; i++) show("both wait", all[i]);
    sem_post(&low.go);
    usleep(20000);
    for (int i = 0; i < 3; i++) show("over", all[i]);
    for (int i = 0; i < 3; i++) {
        sem_post(&all[i]->go);
        pthread_join(all[i]->thread, NULL);
    }
    usleep(20000);
    show("joined", &low);
    printf("threads %d\n", threads());
    return 0;
}
