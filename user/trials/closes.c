/* Children that open as many devices, and files without a name, as they may, and end: everything is closed at once. Prints how many did. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int children = 3, good = 0, descriptors = count > 1 ? atoi(arguments[1]) : 4096;
    struct rlimit limit = {descriptors, descriptors};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    for (int child = 0; child < children; child++)
        if (fork() == 0) {
            int opened = 0;
            while (open(child == 0 ? "/tmp" : "/dev/null", child == 0 ? O_TMPFILE | O_RDWR : O_RDWR, 0600) >= 0)
                opened++;
            _exit(opened < 1000);
        }
    for (int status; wait(&status) > 0;)
        good += status == 0;
    printf("%d of %d\n", good, children);
    return good != children;
}
