/* A file that is wrong: each fault is refused with the file, the line, the key and the reason. */
#include "tests/unit/config_file.h"

#include "common/config_table.h"

#include <sys/stat.h>

#define LOCKSTEP                                                                                             \
    "ranks = { count = 4; lockstep = true; master_ip = \"10.0.0.1\"; master_port = 29600; master_ports = [ " \
    "1 ]; };\n"

/* --- the file --- */

static void assert_unreadable(const char *path, const char *reason)
{
    wg_config_t *config = NULL;
    wg_error_t error = {0};
    assert_int_equal(wg_config_load(&config, path, &error), WG_E_CONFIG);
    char expected[256];
    snprintf(expected, sizeof expected, "%s:0: file: %s", path, reason);
    assert_string_equal(error.message, expected);
    assert_int_equal(wg_config_load(&config, path, NULL), WG_E_CONFIG);
}

static void a_file_that_cannot_be_read(void **state)
{
    (void)state;
    assert_unreadable("/nonexistent/wavegate.cfg", "cannot be opened: No such file or directory");
    assert_unreadable("/tmp", "cannot be read: Is a directory");
}

static void an_endless_file(void **state)
{
    (void)state;
    assert_unreadable("/dev/zero", "is larger than 4194304 bytes");
}

static void a_long_path_leaves_room_for_the_reason(void **state)
{
    (void)state;
    char path[1024];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    wg_config_t *config = NULL;
    wg_error_t error = {0};
    assert_int_equal(wg_config_load(&config, path, &error), WG_E_CONFIG);
    assert_non_null(strstr(error.message, "ppp:0: file: cannot be opened: File name too long"));
}

static void a_nul_byte(void **state)
{
    (void)state;
    wg_config_t *config = NULL;
    wg_error_t error = {0};
    assert_int_equal(config_load_bytes(&config, CONFIG_TEXT, sizeof CONFIG_TEXT, &error), WG_E_CONFIG);
    assert_non_null(strstr(error.message, "holds a NUL byte"));
}

static void an_empty_file(void **state)
{
    (void)state;
    assert_refused_at("", 1, "frontends", "is required");
    assert_refused_at("// nothing\n", 1, "frontends", "is required");
}

static void a_syntax_error(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"count = 4;", "count = ;", "syntax", "syntax error", 0},
        {"\"fe0\"", "\"fe0", "syntax", "syntax error", 0},
        {"eos_token_ids = [ 2, 7 ]", "eos_token_ids = [ 2, \"7\" ]", "syntax", "mismatched element", 0},
        {"frontends = (", "@include \"/tmp\"\nfrontends = (", "syntax", "@include is not supported", 0},
        {"frontends = (", "x = @;\nfrontends = (", "syntax", "syntax error", 0}, );
}

static void a_string_or_a_comment_without_an_end(void **state)
{
    (void)state;
    assert_refused_at("model = { name = \"demo\\\"", 1, "syntax", "syntax error");
    assert_refused_at("\n/* model", 2, "syntax", "the comment that begins here has no end");
}

static void a_key_that_stands_twice(void **state)
{
    (void)state;
    ASSERT_REFUSED({"count = 4;", "count = 4; count = 4;", "syntax", "duplicate setting name", 0},
                   {"frontends = (", CONFIG_RANKS "frontends = (", "syntax", "duplicate setting name", 0}, );
}

static void deep_nesting(void **state)
{
    (void)state;
    char text[20016] = "model = ";
    memset(text + 8, '(', 20000);
    assert_refused_at(text, 1, "syntax", "memory exhausted");
}

/* --- keys --- */

static void an_unknown_key_at_any_level(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"frontends = (", "rank = 1;\nfrontends = (", "rank", "unknown key", 0},
        {"frontends = (", "extra = { count = 1; };\nfrontends = (", "extra", "unknown key", 0},
        {"count = 4;", "cuont = 4;", "ranks.cuont", "unknown key", 0},
        {"http = \"127.0.0.1:9000\"", "http_bind = \"127.0.0.1:9000\"", "coordinator.http_bind",
         "unknown key", 0},
        {"name = \"fe1\";", "name = \"fe1\"; weight = 2;", "frontends[1].weight", "unknown key", 0},
        {"frontends = (", "limits = { max = 1; };\nfrontends = (", "limits.max", "unknown key", 0},
        {"frontends = (", "timeouts = { t = { u = 1; }; };\nfrontends = (", "timeouts.t", "unknown key",
         0}, );
}

static void a_value_of_the_wrong_type(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"count = 4", "count = \"4\"", "ranks.count", "must be an int, not a string", 0},
        {"count = 4", "count = 4.0", "ranks.count", "must be an int, not a float", 0},
        {"lockstep = false", "lockstep = 0", "ranks.lockstep", "must be a bool, not an int", 0},
        {"name = \"demo\"", "name = 1", "model.name", "must be a string, not an int", 0},
        {"name = \"demo\"", "name = { x = 1; }", "model.name", "must be a string, not a group", 0},
        {"[ 2, 7 ]", "2", "model.eos_token_ids", "must be an array, not an int", 0},
        {"[ 2, 7 ]", "[ \"2\" ]", "model.eos_token_ids", "element 0 must be an int, not a string", 0},
        {"[ 2, 7 ]", "( 2, true )", "model.eos_token_ids", "element 1 must be an int, not a bool", 0},
        {"ranks = \"0,2\"", "ranks = [ 0, 2 ]", "frontends[1].ranks", "must be a string, not an array", 0},
        {"\"127.0.0.1:9000\"", "9000", "coordinator.http", "must be a string, not an int", 0},
        {CONFIG_MODEL, "model = \"demo\";\n", "model", "must be a group, not a string", 0},
        {CONFIG_FRONTEND_LIST, "frontends = { name = \"fe0\"; };\n", "frontends",
         "must be a list, not a group", 0},
        {CONFIG_FRONTEND_LIST, "frontends = [ \"fe0\" ];\n", "frontends", "must be a list, not an array", 0},
        {CONFIG_FRONTEND_LIST, "frontends = (\n  \"fe0\" );\n", "frontends[0]",
         "must be a group, not a string", 14},
        {"frontends = (", "log_level = 1;\nfrontends = (", "log_level", "must be a string, not an int", 0}, );
}

static void a_missing_key(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"name = \"demo\";", "", "model.name", "is required", 0},
        {"count = 4;", "", "ranks.count", "is required", 0},
        {CONFIG_RANKS, "", "ranks.count", "is required", 1},
        {"  handshake = \"tcp://127.0.0.1:29550\";\n", "", "coordinator.handshake", "is required", 3},
        {"  control = \"tcp://127.0.0.1:29554\";\n", "", "coordinator.control", "is required", 3},
        {"  input = \"tcp://127.0.0.1:29555\";\n", "", "coordinator.input", "is required", 3},
        {"  output = \"tcp://127.0.0.1:29556\";\n", "", "coordinator.output", "is required", 3},
        {"  http = \"127.0.0.1:9000\";\n", "", "coordinator.http", "is required", 3},
        {"name = \"fe1\";", "", "frontends[1].name", "is required", 0},
        {"ranks = \"0,2\";", "", "frontends[1].ranks", "is required", 0},
        {"http = \"127.0.0.1:8001\";", "", "frontends[1].http", "is required", 0},
        {"input = \"tcp://127.0.0.1:29560\";", "", "frontends[0].input", "is required", 14},
        {"output = \"tcp://127.0.0.1:29561\";", "", "frontends[0].output", "is required", 14},
        {CONFIG_FRONTEND_LIST, "", "frontends", "is required", 1},
        {CONFIG_FRONTEND_LIST, "frontends = ();\n", "frontends", "has 0 frontends, must have 1 to 1024",
         0}, );
}

static void a_number_out_of_range(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"count = 4", "count = 0", "ranks.count", "0 is out of range, must be in [1, 65536]", 0},
        {"count = 4", "count = 65537", "ranks.count", "65537 is out of range, must be in [1, 65536]", 0},
        {"count = 4", "count = -1", "ranks.count", "-1 is out of range", 0},
        {"vocab_size = 32000", "vocab_size = 0", "model.vocab_size", "must be in [1, 2147483647]", 0},
        {"[ 2, 7 ]", "[ 2, -1 ]", "model.eos_token_ids", "-1 is out of range, must be in [0, 2147483647]", 0},
        {"[ 2, 7 ]", "[ 2, 32000 ]", "model.eos_token_ids",
         "32000 is out of range, must be below model.vocab_size (32000)", 0},
        {"[ 2, 7 ]", "[ 2, 7, 2 ]", "model.eos_token_ids", "2 stands twice", 0}, );
}

static void a_list_that_is_too_long(void **state)
{
    (void)state;
    char ids[16 + 1025 * sizeof "1234, "];
    size_t used = (size_t)snprintf(ids, sizeof ids, "[ 0");
    for (unsigned id = 1; id < 1025; id++)
        used += (size_t)snprintf(ids + used, sizeof ids - used, ", %u", id);
    snprintf(ids + used, sizeof ids - used, " ]");
    const refusal_t refusal = {"[ 2, 7 ]", ids, "model.eos_token_ids", "has 1025 elements, the most are 1024",
                               0};
    assert_refused(&refusal, 1);
}

/* What libconfig alone would cut to 32 bits, to a number that is in range. */
static void a_number_that_is_too_wide(void **state)
{
    (void)state;
    ASSERT_REFUSED({"count = 4", "count = 4294967300", "ranks.count", "4294967300 is out of range", 0},
                   {"count = 4", "count = 4294967300L", "ranks.count", "4294967300 is out of range", 0},
                   {"count = 4", "count = -4294967292", "ranks.count", "-4294967292 is out of range", 0},
                   {"count = 4", "count = 0x100000004", "ranks.count", "4294967300 is out of range", 0},
                   {"count = 4", "count = 0x10000000000000004L", "ranks.count",
                    "9223372036854775807 is out of range", 0},
                   {"count = 4", "count = 18446744073709551620", "ranks.count",
                    "9223372036854775807 is out of range", 0},
                   {"count = 4", "count = 4.5000000000", "ranks.count", "must be an int, not a float", 0},
                   {"count = 4", "count = 5000000000e3", "ranks.count", "must be an int, not a float", 0},
                   {"count = 4", "count = 5000000000x", "syntax", "syntax error", 0},
                   {"count = 4;",
                    "count = 4; # 5000000000\n /* 5000000000 \" */ // 5000000000\n x5000000000 = 1;",
                    "ranks.x5000000000", "unknown key", 4},
                   {"\"demo\"", "\"5000000000 \\\" 5000000000\"; v5 = 1", "model.v5", "unknown key", 0}, );
}

static void limits_and_timeouts_name_their_range(void **state)
{
    (void)state;
    size_t count;
    const config_key_t *keys = config_keys(&count);
    size_t checked = 0;
    size_t ranges = 0;
    for (const config_key_t *key = keys; key < keys + count; key++) {
        if (strcmp(key->section, "limits") != 0 && strcmp(key->section, "timeouts") != 0)
            continue;
        if (key->type != &config_type_int)
            continue;
        ranges++;
        const long long wrong[] = {(long long)key->min - 1, (long long)key->max + 1};
        for (size_t i = 0; i < 2; i++) {
            char text[4096];
            char name[64];
            char reason[96];
            snprintf(text, sizeof text, "%s = { %s = %lld; };\n" CONFIG_TEXT, key->section, key->name,
                     wrong[i]);
            snprintf(name, sizeof name, "%s.%s", key->section, key->name);
            snprintf(reason, sizeof reason, "%lld is out of range, must be in [%lld, %lld]", wrong[i],
                     (long long)key->min, (long long)key->max);
            assert_refused_at(text, 1, name, reason);
            checked++;
        }
    }
    assert_int_equal(checked, 2 * ranges);
}

static void timeouts_that_contradict_each_other(void **state)
{
    (void)state;
    ASSERT_REFUSED({"frontends = (", "timeouts = { heartbeat_timeout_ms = 2000; };\nfrontends = (",
                    "timeouts.heartbeat_timeout_ms", "2000 must be above heartbeat_interval_ms (2000)", 0},
                   {"frontends = (", "timeouts = { heartbeat_interval_ms = 20000; };\nfrontends = (",
                    "timeouts.heartbeat_timeout_ms", "10000 must be above heartbeat_interval_ms (20000)", 0},
                   {"frontends = (", "timeouts = { http_idle_ms = 999; };\nfrontends = (",
                    "timeouts.http_idle_ms", "must be 0 (never) or at least 1000", 0},
                   {"frontends = (", "timeouts = { rank_silence_ms = 999; };\nfrontends = (",
                    "timeouts.rank_silence_ms", "must be 0 (no limit) or at least 1000", 0},
                   {"frontends = (", "timeouts = { on_startup_timeout = \"exit\"; };\nfrontends = (",
                    "timeouts.on_startup_timeout", "\"exit\" needs a limit: startup_ms is 0 (none)", 0}, );
}

static void a_text_that_cannot_stand(void **state)
{
    (void)state;
    ASSERT_REFUSED({"\"demo\"", "\"\"", "model.name", "has 0 bytes, must have 1 to 255", 0},
                   {"\"demo\"", "\"a\\nb\"", "model.name", "holds a control character", 0},
                   {"\"demo\"", "\"\\xff\"", "model.name", "is not UTF-8", 0},
                   {"frontends = (", "log_level = \"info\";\nfrontends = (", "log_level",
                    "must be error, warning, notice or debug, not `info`", 0},
                   {"frontends = (", "timeouts = { on_startup_timeout = \"\"; };\nfrontends = (",
                    "timeouts.on_startup_timeout", "must be wait or exit, not ``", 0}, );
}

static void a_name_that_no_frontend_may_have(void **state)
{
    (void)state;
    ASSERT_REFUSED({"\"fe1\"", "\"fe0\"", "frontends[1].name", "`fe0` is the name of frontends[0] too", 0},
                   {"\"fe1\"", "\"\"", "frontends[1].name", "has 0 bytes, must have 1 to 64", 0},
                   {"\"fe1\"", "\"0123456789012345678901234567890123456789012345678901234567890123x\"",
                    "frontends[1].name", "has 65 bytes", 0},
                   {"\"fe1\"", "\"fe 1\"", "frontends[1].name", "`fe 1` may hold only", 0},
                   {"\"fe1\"", "\"fe/1\"", "frontends[1].name", "may hold only", 0},
                   {"\"fe1\"", "\"f\xc3\xa9\"", "frontends[1].name", "`f??` may hold only", 0}, );
}

/* --- ranks --- */

static void a_rank_in_no_frontend(void **state)
{
    (void)state;
    ASSERT_REFUSED({"\"0-3\"", "\"0-1\"", "frontends", "rank 3 is in the ranks of no frontend", 13},
                   {"count = 4", "count = 5", "frontends", "rank 4 is in the ranks of no frontend", 13}, );
}

static void ranks_that_do_not_parse(void **state)
{
    (void)state;
    static const struct {
        const char *ranks;
        const char *reason;
    } cases[] = {
        {"", "a rank is expected"},
        {"0,", "a rank is expected"},
        {",0", "a rank is expected at `,0`"},
        {"0,,1", "a rank is expected"},
        {"0-", "a rank is expected"},
        {"-1", "a rank is expected"},
        {"a", "a rank is expected at `a`"},
        {"0;1", "a comma is expected"},
        {"0 1", "a comma is expected at `1`"},
        {"0-1-2", "a comma is expected"},
        {"0x1", "a comma is expected"},
        {"3-2", "the range 3-2 runs backwards"},
        {"0,0", "rank 0 stands twice"},
        {"0-2,1", "rank 1 stands twice"},
        {"2,1-3", "rank 2 stands twice"},
        {"4", "rank 4 is out of range, must be in [0, 3]"},
        {"0-4", "rank 4 is out of range, must be in [0, 3]"},
        {"18446744073709551616", "rank 18446744073709551616 is out of range"},
        {"99999999999999999999999999999999999999999", "is out of range, must be in [0, 3]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char keys[96];
        snprintf(keys, sizeof keys, "ranks = \"%s\"; http = \"127.0.0.1:8001\"", cases[i].ranks);
        const refusal_t refusal = {"ranks = \"0,2\"; http = \"127.0.0.1:8001\"", keys, "frontends[1].ranks",
                                   cases[i].reason, 0};
        assert_refused(&refusal, 1);
    }
}

/* --- lockstep --- */

static void lockstep_without_what_it_needs(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"lockstep = false;", "lockstep = true;", "ranks.master_ip",
         "is required where ranks.lockstep is true", 0},
        {"lockstep = false;", "lockstep = true; master_ip = \"h\"; master_ports = [ 1 ];",
         "ranks.master_port", "is required where ranks.lockstep is true", 0},
        {"lockstep = false;", "lockstep = true; master_ip = \"h\"; master_port = 1;", "ranks.master_ports",
         "is required where ranks.lockstep is true", 0},
        {"lockstep = false;", "lockstep = true; master_ip = \"h\"; master_port = 1; master_ports = [ ];",
         "ranks.master_ports", "is required", 0},
        {"lockstep = false;", "lockstep = true; master_ip = \"*\";", "ranks.master_ip", "is a wildcard", 0},
        {"lockstep = false;", "lockstep = true; master_ip = \"::\";", "ranks.master_ip", "is a wildcard", 0},
        {"lockstep = false;", "lockstep = true; master_ip = \"a b\";", "ranks.master_ip",
         "is not a host name", 0},
        {"lockstep = false;", "master_port = 0;", "ranks.master_port", "must be in [1, 65535]", 0},
        {"lockstep = false;", "master_ports = [ 65536 ];", "ranks.master_ports", "must be in [1, 65535]", 0},
        {"lockstep = false;", "master_ports = [ 5, 5 ];", "ranks.master_ports", "5 stands twice", 0}, );

    const char *const wave[] = {"engine_publish", "engine_output", "frontend_publish"};
    char *text = config_replaced(CONFIG_TEXT, CONFIG_RANKS, LOCKSTEP);
    for (unsigned i = 0; i < 3; i++) {
        char line[64];
        char key[64];
        snprintf(line, sizeof line, "  %s = \"tcp://127.0.0.1:2955%u\";\n", wave[i], i + 1);
        snprintf(key, sizeof key, "coordinator.%s", wave[i]);
        char *without = config_replaced(text, line, "");
        assert_refused_at(without, 3, key, "is required where ranks.lockstep is true");
        free(without);
        const refusal_t independent = {line, "", key, "all three or none", 3};
        assert_refused(&independent, 1);
    }
    free(text);
}

static void a_master_without_lockstep(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        {"lockstep = false;", "master_ip = \"10.0.0.1\";", "ranks.master_ip", "is for a lockstep group only",
         0},
        {"lockstep = false;", "master_port = 1;", "ranks.master_port", "is for a lockstep group only", 0},
        {"lockstep = false;", "master_ports = [ ];", "ranks.master_ports", "is for a lockstep group only",
         0}, );
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_cannot_be_read),
        cmocka_unit_test(an_endless_file),
        cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
        cmocka_unit_test(a_nul_byte),
        cmocka_unit_test(an_empty_file),
        cmocka_unit_test(a_syntax_error),
        cmocka_unit_test(a_string_or_a_comment_without_an_end),
        cmocka_unit_test(a_key_that_stands_twice),
        cmocka_unit_test(deep_nesting),
        cmocka_unit_test(an_unknown_key_at_any_level),
        cmocka_unit_test(a_value_of_the_wrong_type),
        cmocka_unit_test(a_missing_key),
        cmocka_unit_test(a_number_out_of_range),
        cmocka_unit_test(a_list_that_is_too_long),
        cmocka_unit_test(a_number_that_is_too_wide),
        cmocka_unit_test(limits_and_timeouts_name_their_range),
        cmocka_unit_test(timeouts_that_contradict_each_other),
        cmocka_unit_test(a_text_that_cannot_stand),
        cmocka_unit_test(a_name_that_no_frontend_may_have),
        cmocka_unit_test(a_rank_in_no_frontend),
        cmocka_unit_test(ranks_that_do_not_parse),
        cmocka_unit_test(lockstep_without_what_it_needs),
        cmocka_unit_test(a_master_without_lockstep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
