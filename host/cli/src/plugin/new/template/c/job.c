//! AcmeJob `acme.example.org/v1acme1` for Troupe: so many workers, each of which knows its index.
//!
//! Change `describe` for what the plugin serves, `plan` for its pods, and `judge` for its status. `wit/framework.wit`
//! explains every field; `bindings/plugin.h` is made from it by `troupe plugin build`. What is returned is freed after the
//! call, so every text and every list in it is allocated. The same arguments must give the same answer: there is no clock
//! and no network, and the host may call any of them again.

#include "bindings/plugin.h"
#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/// The one role: its pods are called `JOB-worker-INDEX`.
#define WORKER "worker"

/// The label of all pods of these jobs. The host watches pods that have it.
#define LABEL "acme.example.org/job-name"

/// The label in a JSON pointer.
#define LABEL_POINTER "/metadata/labels/acme.example.org~1job-name"

/// The most replicas that the host makes for a role.
#define MAX_REPLICAS 10000

typedef plugin_string_t string_t;
typedef troupe_framework_types_piece_t piece_t;
typedef troupe_framework_types_text_t text_t;
typedef troupe_framework_types_edit_t edit_t;
typedef troupe_framework_types_role_t role_t;
typedef troupe_framework_types_field_error_t field_error_t;
typedef exports_troupe_framework_framework_job_view_t job_view_t;
typedef exports_troupe_framework_framework_observation_t observation_t;
typedef exports_troupe_framework_framework_refusal_t refusal_t;

/// A copy of the text, formatted as by `printf`.
__attribute__((format(printf, 1, 2))) static string_t text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    char *to = malloc((size_t)len + 1);
    vsnprintf(to, (size_t)len + 1, format, again);
    va_end(again);
    va_end(args);
    return (string_t){ (uint8_t *)to, (size_t)len };
}

static bool is(string_t text, const char *other) {
    return text.len == strlen(other) && memcmp(text.ptr, other, text.len) == 0;
}

/// Room for so many zeros of this type: in most types that is nothing, none or the first case.
#define NEW(type, count) ((type *)calloc((count), sizeof(type)))

/// A list with one item.
#define ONE(list, type, item) \
    do { \
        (list).ptr = NEW(type, 1); \
        (list).len = 1; \
        (list).ptr[0] = (item); \
    } while (0)

static piece_t words(string_t words) {
    return (piece_t){ .tag = TROUPE_FRAMEWORK_TYPES_PIECE_TEXT, .val.text = words };
}

static const piece_t JOB_NAME = { .tag = TROUPE_FRAMEWORK_TYPES_PIECE_JOB_NAME };
static const piece_t INDEX = { .tag = TROUPE_FRAMEWORK_TYPES_PIECE_INDEX, .val.index = 0 };

void exports_troupe_framework_framework_describe(exports_troupe_framework_framework_descriptor_t *ret) {
    memset(ret, 0, sizeof *ret);
    troupe_framework_types_kind_info_t kind = {
        .group = text("acme.example.org"),
        .version = text("v1acme1"),
        .kind = text("AcmeJob"),
        .plural = text("acmejobs"),
        .switches = { .suspend = { .is_some = true, .val = text("/suspend") } },
        .event_source = text("acme-plugin"),
        .queueing = TROUPE_FRAMEWORK_TYPES_QUEUEING_HOST,
    };
    ONE(kind.roles, string_t, text(WORKER));
    troupe_framework_types_child_kind_t pods = {
        .api_version = text("v1"),
        .kind = text("Pod"),
        .plural = text("pods"),
        .selector = { .is_some = true, .val = text(LABEL) },
    };
    ret->name = text("acme");
    ret->version = text("0.1.0");
    ONE(ret->kinds, troupe_framework_types_kind_info_t, kind);
    ONE(ret->children, troupe_framework_types_child_kind_t, pods);
    ret->config_schema = text("{ \"type\": \"object\", \"additionalProperties\": false }");
    ret->grants = text("{}");
}

/// What of a job's spec matters.
typedef struct {
    uint32_t replicas;
} spec_t;

/// The fields that are wrong so far.
typedef struct {
    field_error_t *ptr;
    size_t len;
} errors_t;

static void wrong(errors_t *errors, const char *path, string_t message) {
    errors->ptr = realloc(errors->ptr, (errors->len + 1) * sizeof(field_error_t));
    errors->ptr[errors->len++] = (field_error_t){ .path = text("%s", path), .message = message };
}

/// Refuses a value of another type.
static void wrong_type(errors_t *errors, const char *path, const char *right, json_t value) {
    const char *said = value.at ? value.at : "missing";
    int len = (int)(value.at ? value.len : strlen(said));
    wrong(errors, path, text("must be %s, not %.*s", right, len, said));
}

/// Reads the job's spec, or refuses it with every field that is wrong.
static bool checked(job_view_t *job, spec_t *spec, refusal_t *err) {
    errors_t errors = { NULL, 0 };
    json_t whole = json_of(job->spec.ptr, job->spec.len);
    json_t suspend = json_field(whole, "suspend");
    json_type_t type = json_type(suspend);
    if (type != JSON_NOTHING && type != JSON_NULL && type != JSON_BOOL) {
        wrong_type(&errors, "spec.suspend", "a boolean", suspend);
    }
    json_t worker = json_field(whole, "worker");
    if (json_type(worker) != JSON_OBJECT) {
        wrong(&errors, "spec.worker", text("is required: replicas and a template"));
    } else {
        json_t replicas = json_field(worker, "replicas");
        int64_t count = json_integer(replicas);
        if (json_type(replicas) != JSON_INTEGER) {
            wrong_type(&errors, "spec.worker.replicas", "an integer", replicas);
        } else if (count < 1 || count > MAX_REPLICAS) {
            wrong(&errors, "spec.worker.replicas", text("must be from 1 to %d, not %lld", MAX_REPLICAS, (long long)count));
        }
        spec->replicas = (uint32_t)count;
        json_t template = json_field(worker, "template");
        json_t pod = json_field(template, "spec");
        json_t containers = json_field(pod, "containers");
        if (json_type(template) != JSON_OBJECT) {
            wrong(&errors, "spec.worker.template", text("is required: a pod template with at least one container"));
        } else if (json_type(pod) != JSON_OBJECT) {
            wrong(&errors, "spec.worker.template.spec", text("is required: a pod spec with at least one container"));
        } else if (json_type(containers) != JSON_LIST || json_is_empty(containers)) {
            wrong(&errors, "spec.worker.template.spec.containers", text("must define at least one container"));
        }
    }
    if (errors.len == 0) return true;
    err->tag = TROUPE_FRAMEWORK_TYPES_REFUSAL_INVALID;
    err->val.invalid.ptr = errors.ptr;
    err->val.invalid.len = errors.len;
    return false;
}

static edit_t set(const char *at, string_t json) {
    return (edit_t){ .tag = TROUPE_FRAMEWORK_TYPES_EDIT_SET, .val.set = { text("%s", at), json } };
}

bool exports_troupe_framework_framework_plan(
    job_view_t *job, exports_troupe_framework_framework_job_plan_t *ret, refusal_t *err
) {
    spec_t spec;
    if (!checked(job, &spec, err)) return false;
    memset(ret, 0, sizeof *ret);

    role_t role = { .name = text(WORKER), .replicas = spec.replicas };
    role.backing.tag = TROUPE_FRAMEWORK_TYPES_BACKING_PODS;
    role.pod_name = (text_t){ NEW(piece_t, 3), 3 };
    role.pod_name.ptr[0] = JOB_NAME;
    role.pod_name.ptr[1] = words(text("-worker-"));
    role.pod_name.ptr[2] = INDEX;
    // The template stays with the host: these edits are made in the user's.
    role.template_.tag = TROUPE_FRAMEWORK_TYPES_TEMPLATE_EDITED;
    role.template_.val.edited.f0 = text("/worker/template");
    role.template_.val.edited.f1.ptr = NEW(edit_t, 2);
    role.template_.val.edited.f1.len = 2;
    role.template_.val.edited.f1.ptr[0] = set(LABEL_POINTER, text("\"%.*s\"", (int)job->name.len, job->name.ptr));
    role.template_.val.edited.f1.ptr[1] = set("/spec/restartPolicy", text("\"Never\""));
    role.env.ptr = NEW(troupe_framework_types_env_entry_t, 2);
    role.env.len = 2;
    role.env.ptr[0].name = text("WORKER_COUNT");
    ONE(role.env.ptr[0].value, piece_t, words(text("%u", spec.replicas)));
    // What differs from pod to pod: the host fills it in.
    role.env.ptr[1].container = text("*");
    role.env.ptr[1].name = text("WORKER_INDEX");
    ONE(role.env.ptr[1].value, piece_t, INDEX);
    role.success = TROUPE_FRAMEWORK_TYPES_SUCCESS_FINAL;
    role.deletion = TROUPE_FRAMEWORK_TYPES_DELETION_UNCOUNTED;

    ONE(ret->roles, role_t, role);
    ret->policy.clean_on_success = TROUPE_FRAMEWORK_TYPES_CLEAN_KEEP;
    ret->policy.clean_on_failure = TROUPE_FRAMEWORK_TYPES_CLEAN_ACTIVE;
    ret->policy.clean_on_suspend = TROUPE_FRAMEWORK_TYPES_CLEAN_ALL;
    return true;
}

/// What `bind` was shown: `judge` is called after it, on the same instance.
static struct {
    spec_t spec;
    observation_t seen;
} shown;

/// The plan has no object whose body depends on what the pods are, so there is nothing to bind.
bool exports_troupe_framework_framework_bind(
    job_view_t *job, observation_t *seen, plugin_list_string_t *wanted,
    exports_troupe_framework_framework_bindings_t *ret, refusal_t *err
) {
    (void)wanted;
    // Arguments belong to the function that is called: this one does not free them.
    shown.seen = *seen;
    memset(ret, 0, sizeof *ret);
    return checked(job, &shown.spec, err);
}

static uint32_t count(troupe_framework_types_pod_phase_t phase) {
    uint32_t count = 0;
    for (size_t i = 0; i < shown.seen.pods.len; i++) {
        troupe_framework_types_pod_row_t *pod = &shown.seen.pods.ptr[i];
        count += is(pod->role, WORKER) && !pod->terminating && pod->phase == phase;
    }
    return count;
}

/// Pods that have succeeded may be gone.
static uint32_t succeeded_without_pod(void) {
    uint32_t count = 0;
    for (size_t i = 0; i < shown.seen.roles.len; i++) {
        troupe_framework_types_role_facts_t *facts = &shown.seen.roles.ptr[i];
        for (size_t j = 0; is(facts->role, WORKER) && j < facts->succeeded.len; j++) {
            count += facts->succeeded.ptr[j].f1 - facts->succeeded.ptr[j].f0 + 1;
        }
    }
    return count;
}

/// When the job ended, as a field of its status: as it was said before, or now.
static string_t completion_time(void) {
    json_t before = json_of(shown.seen.previous_status.ptr, shown.seen.previous_status.len);
    json_t time = json_field(before, "completionTime");
    if (json_type(time) == JSON_STRING) return text(",\"completionTime\":%.*s", (int)time.len, time.at);
    time_t seconds = (time_t)(shown.seen.now / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    char now[32];
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text(",\"completionTime\":\"%s\"", now);
}

bool exports_troupe_framework_framework_judge(
    exports_troupe_framework_framework_outlook_t *outlook, exports_troupe_framework_framework_verdict_t *ret,
    refusal_t *err
) {
    (void)err;
    uint32_t running = count(TROUPE_FRAMEWORK_TYPES_POD_PHASE_RUNNING);
    uint32_t failed = count(TROUPE_FRAMEWORK_TYPES_POD_PHASE_FAILED);
    uint32_t succeeded = count(TROUPE_FRAMEWORK_TYPES_POD_PHASE_SUCCEEDED) + succeeded_without_pod();
    const char *phase = "Pending";
    troupe_framework_types_outcome_t outcome = TROUPE_FRAMEWORK_TYPES_OUTCOME_OPEN;
    if (outlook->suspended) {
        phase = "Suspended";
    } else if (failed > 0) {
        phase = "Failed";
        outcome = TROUPE_FRAMEWORK_TYPES_OUTCOME_FAILED;
    } else if (succeeded >= shown.spec.replicas) {
        phase = "Succeeded";
        outcome = TROUPE_FRAMEWORK_TYPES_OUTCOME_SUCCEEDED;
    } else if (running + succeeded > 0) {
        phase = "Running";
    }
    string_t ended = outcome == TROUPE_FRAMEWORK_TYPES_OUTCOME_OPEN ? text("%s", "") : completion_time();
    memset(ret, 0, sizeof *ret);
    ret->status = text(
        "{\"phase\":\"%s\",\"running\":%u,\"succeeded\":%u,\"failed\":%u%.*s}",
        phase, running, succeeded, failed, (int)ended.len, ended.ptr
    );
    ret->headline = text("%s", phase);
    ret->outcome = outcome;
    return true;
}
