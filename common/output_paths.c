#include "common/output_paths.h"

#include "common/connection.h"

#include <stdlib.h>

typedef struct {
    connection_t now;
    connection_t before; /* the one before, or an older one: of an engine whose place another has taken */
    bool broken;         /* another place's connection has the number of this one's */
} path_t;

struct output_paths {
    path_t *paths;
    uint32_t count;
};

output_paths_t *output_paths_new(uint32_t count)
{
    output_paths_t *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->count = count;
    self->paths = calloc(count, sizeof *self->paths);
    if (!self->paths)
        output_paths_destroy(&self);
    return self;
}

void output_paths_destroy(output_paths_t **paths)
{
    output_paths_t *self = *paths;
    if (!self)
        return;
    free(self->paths);
    free(self);
    *paths = NULL;
}

int64_t output_paths_find(const output_paths_t *paths, int fd, bool *is_over)
{
    connection_t connection = {0};
    *is_over = false;
    for (uint32_t place = 0; place < paths->count; place++) {
        const path_t *path = &paths->paths[place];
        if (path->now.fd != fd && path->before.fd != fd)
            continue;
        if (connection.fd == 0)
            connection = connection_of(fd);
        *is_over = connection.cookie == 0;
        if (*is_over || connection_is(path->now, connection) || connection_is(path->before, connection))
            return place;
    }
    return -1;
}

void output_paths_accepted(output_paths_t *paths, int fd)
{
    for (uint32_t place = 0; place < paths->count; place++) {
        path_t *path = &paths->paths[place];
        if (path->now.fd == fd && !connection_is_open(path->now)) /* else it is this one's own beginning */
            *path = (path_t){.broken = true};
        else if (path->before.fd == fd && !connection_is_open(path->before))
            path->before = (connection_t){0};
    }
}

bool output_paths_move(output_paths_t *paths, uint32_t place, int fd)
{
    path_t *path = &paths->paths[place];
    connection_t connection = connection_of(fd);
    bool had_one = path->now.fd > 0 || path->broken;
    bool lives = connection_is_open(path->now);
    if (connection.cookie == 0 && lives)
        return false; /* the last messages of an older one, behind the first of its successor */
    output_paths_accepted(paths, fd);
    connection_t before = lives ? path->now : (connection_t){0};
    *path = (path_t){.now = connection, .before = before};
    return had_one;
}

bool output_paths_take_broken(output_paths_t *paths, uint32_t place)
{
    path_t *path = &paths->paths[place];
    bool broken = path->broken || (path->now.fd > 0 && !connection_is_open(path->now));
    if (broken)
        *path = (path_t){.before = path->now}; /* whose end libzmq may tell only now */
    return broken;
}

bool output_paths_knows(const output_paths_t *paths, int fd)
{
    for (uint32_t place = 0; place < paths->count; place++) {
        if (paths->paths[place].now.fd == fd || paths->paths[place].before.fd == fd)
            return true;
    }
    return false;
}

bool output_paths_is_unknown(const output_paths_t *paths, uint32_t place)
{
    return paths->paths[place].now.fd == 0 && !paths->paths[place].broken;
}

void output_paths_forget(output_paths_t *paths, uint32_t place)
{
    paths->paths[place] = (path_t){0};
}
