#include "common/output_paths.h"

#include <stdlib.h>
#include <sys/socket.h>

typedef struct {
    uint64_t cookie;
    bool broken;
} path_t;

struct output_paths {
    int *descriptors; /* by place; 0: none. Apart from the rest, for they are searched for every message */
    path_t *paths;
    uint32_t count;
};

/* Of the socket that has this number now; 0: none has. */
static uint64_t cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

output_paths_t *output_paths_new(uint32_t count)
{
    output_paths_t *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->count = count;
    self->descriptors = calloc(count, sizeof *self->descriptors);
    self->paths = calloc(count, sizeof *self->paths);
    if (!self->descriptors || !self->paths)
        output_paths_destroy(&self);
    return self;
}

void output_paths_destroy(output_paths_t **paths)
{
    output_paths_t *self = *paths;
    if (!self)
        return;
    free(self->descriptors);
    free(self->paths);
    free(self);
    *paths = NULL;
}

static int64_t place_of(const output_paths_t *self, int fd)
{
    for (uint32_t place = 0; place < self->count; place++) {
        if (self->descriptors[place] == fd)
            return place;
    }
    return -1;
}

int64_t output_paths_find(const output_paths_t *paths, int fd)
{
    int64_t place = place_of(paths, fd);
    if (place < 0)
        return -1;
    uint64_t now = cookie_of(fd);
    bool is_another = now != 0 && now != paths->paths[place].cookie;
    return is_another ? -1 : place; /* closed: it is one of its last messages */
}

/* Whoever else had that number has lost its connection, or there would be no other with it. */
static void retire(output_paths_t *self, int fd)
{
    int64_t place;
    while ((place = place_of(self, fd)) >= 0) {
        self->descriptors[place] = 0;
        self->paths[place].broken = true;
    }
}

bool output_paths_move(output_paths_t *paths, uint32_t place, int fd)
{
    uint64_t cookie = cookie_of(fd);
    bool had_one = paths->descriptors[place] > 0 || paths->paths[place].broken;
    if (cookie == 0 && had_one)
        return false; /* an old one's last message, behind the first of its successor */
    retire(paths, fd);
    paths->descriptors[place] = fd;
    paths->paths[place] = (path_t){.cookie = cookie, .broken = cookie == 0};
    return had_one;
}

void output_paths_closed(output_paths_t *paths, int fd)
{
    int64_t place = place_of(paths, fd);
    uint64_t now = cookie_of(fd);
    bool is_older = place >= 0 && now != 0 && now == paths->paths[place].cookie;
    if (place >= 0 && !is_older) /* else the number's user before this one has ended */
        paths->paths[place].broken = true;
}

bool output_paths_take_broken(output_paths_t *paths, uint32_t place)
{
    bool broken = paths->paths[place].broken;
    if (broken)
        output_paths_forget(paths, place);
    return broken;
}

void output_paths_forget(output_paths_t *paths, uint32_t place)
{
    paths->descriptors[place] = 0;
    paths->paths[place] = (path_t){0};
}
