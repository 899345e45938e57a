/* Histograms of durations: the results for known values. */
#include "tables/histogram.h"

#include "check.h"

static void add_all(vst__histogram *h, int64_t first, int64_t last,
                    int64_t step)
{
    for (int64_t ns = first; ns <= last; ns += step)
        CHECK_INT(vst__histogram_add(h, ns), VST_OK);
}

static void check_near(int64_t value, int64_t expected, int64_t parts)
{
    CHECK(value >= expected - expected / parts);
    CHECK(value <= expected + expected / parts);
}

static void few_values_are_exact(void)
{
    vst__histogram h = {.count = 0};
    int64_t sum_ns;

    CHECK_INT(vst__histogram_quantile(&h, 0.5), 0);
    add_all(&h, 1000003, 1000102, 1); /* 100 values that share a bucket */
    CHECK_INT(vst__histogram_quantile(&h, 0), 1000003);
    CHECK_INT(vst__histogram_quantile(&h, 0.5), 1000053);
    CHECK_INT(vst__histogram_quantile(&h, 0.99), 1000102);
    CHECK_INT(vst__histogram_above(&h, 1000101, &sum_ns), 2);
    CHECK_INT(sum_ns, 1000101 + 1000102);
    vst__histogram_free(&h);
}

static void many_values_are_near(void)
{
    vst__histogram h = {.count = 0};
    int64_t sum_ns;

    add_all(&h, 1, 100000, 1);
    CHECK(h.values == NULL);
    CHECK_INT(h.count, 100000);
    CHECK_INT(h.min_ns, 1);
    CHECK_INT(h.max_ns, 100000);
    CHECK_INT(h.sum_ns, 5000050000);
    check_near(vst__histogram_quantile(&h, 0.5), 50000, 100);
    check_near(vst__histogram_quantile(&h, 0.99), 99000, 100);
    CHECK_INT(vst__histogram_quantile(&h, 1), 100000);
    check_near((int64_t)vst__histogram_above(&h, 90000, &sum_ns), 10000, 4);
    check_near(sum_ns, 950000000, 4);
    vst__histogram_free(&h);
}

/* base^i < value <= base^(i + 1), so 2^k is the last value of its bucket. */
static void buckets_are_those_of_opentelemetry(void)
{
    vst__histogram h = {.count = 0};

    for (int i = 0; i < 100; i++)
        CHECK_INT(vst__histogram_add(&h, 1024), VST_OK);
    for (int i = 0; i < 100; i++)
        CHECK_INT(vst__histogram_add(&h, 1025), VST_OK);
    CHECK_INT(h.scale, VST_HISTOGRAM_SCALE);
    CHECK_INT(h.offset, (10 << VST_HISTOGRAM_SCALE) - 1);
    CHECK_INT(h.used, 2);
    CHECK_INT(h.buckets[0], 100);
    CHECK_INT(h.buckets[1], 100);
    vst__histogram_free(&h);
}

static void memory_is_bounded_however_far_apart_values_are(void)
{
    vst__histogram h = {.count = 0};

    for (int i = 0; i < 10; i++)
        for (int power = 0; power < 63; power++)
            CHECK_INT(vst__histogram_add(&h, (int64_t)1 << power), VST_OK);
    CHECK_INT(vst__histogram_add(&h, 0), VST_OK);
    CHECK_INT(vst__histogram_add(&h, -5), VST_OK);
    CHECK_INT(vst__histogram_add(&h, INT64_MAX), VST_OK);
    CHECK(h.used <= VST_HISTOGRAM_BUCKETS);
    CHECK_INT(h.zeros, 2);
    CHECK_INT(h.count, 633);
    CHECK_INT(vst__histogram_quantile(&h, 0), 0);
    check_near(vst__histogram_quantile(&h, 0.5), (int64_t)1 << 31, 4);
    vst__histogram_free(&h);
}

static void check_equal(const vst__histogram *a, const vst__histogram *b)
{
    CHECK_INT(a->count, b->count);
    CHECK_INT(a->sum_ns, b->sum_ns);
    CHECK_INT(a->min_ns, b->min_ns);
    CHECK_INT(a->max_ns, b->max_ns);
    for (int share = 0; share <= 100; share++)
        CHECK_INT(vst__histogram_quantile(a, share / 100.0),
                  vst__histogram_quantile(b, share / 100.0));
}

/* Merges histograms of any two ranges: both exact and coarse. */
static void merged_is_what_one_histogram_of_all_is(void)
{
    static const int64_t lasts[] = {20, 200, 5000, 4000000};

    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++) {
            vst__histogram all = {.count = 0}, a = all, b = all;

            add_all(&all, 0, lasts[i], 1 + lasts[i] / 3000);
            add_all(&all, 7, lasts[j], 1 + lasts[j] / 500);
            add_all(&a, 0, lasts[i], 1 + lasts[i] / 3000);
            add_all(&b, 7, lasts[j], 1 + lasts[j] / 500);
            CHECK_INT(vst__histogram_merge(&a, &b), VST_OK);
            check_equal(&a, &all);
            vst__histogram_free(&all);
            vst__histogram_free(&a);
            vst__histogram_free(&b);
        }
}

static void what_is_written_can_be_read(void)
{
    static const int64_t lasts[] = {0, 100, 70000};
    char text[VST_HISTOGRAM_TEXT], again[VST_HISTOGRAM_TEXT];

    for (size_t i = 0; i < 3; i++) {
        vst__histogram h = {.count = 0}, other = h;
        size_t length;

        add_all(&h, 0, lasts[i], 1 + lasts[i] / 1000);
        length = vst__histogram_write(&h, text);
        CHECK_INT(length, strlen(text));
        CHECK_INT(vst__histogram_read(&other, text), VST_OK);
        check_equal(&h, &other);
        vst__histogram_write(&other, again);
        CHECK_TEXT(again, text);
        vst__histogram_free(&h);
        vst__histogram_free(&other);
    }
}

/* The longest text has the largest number of buckets, each with a count of many
 * digits. */
static void the_longest_text_fits(void)
{
    uint64_t counts[VST_HISTOGRAM_BUCKETS];
    char text[VST_HISTOGRAM_TEXT];
    vst__histogram h = {.count = UINT64_MAX,
                        .sum_ns = INT64_MIN,
                        .min_ns = INT64_MIN,
                        .max_ns = INT64_MIN,
                        .scale = -6,
                        .zeros = UINT64_MAX,
                        .offset = -1,
                        .buckets = counts,
                        .used = VST_HISTOGRAM_BUCKETS};
    size_t length;

    memset(counts, 0xff, sizeof counts);
    length = vst__histogram_write(&h, text);
    CHECK_TEXT(text + length - 4, "5]}}");
}

static void damaged_text_is_refused(void)
{
    char text[VST_HISTOGRAM_TEXT];
    vst__histogram h = {.count = 0}, other = h;

    add_all(&h, 1, 300, 1);
    for (size_t length = vst__histogram_write(&h, text); length-- != 0;) {
        text[length] = '\0';
        CHECK_INT(vst__histogram_read(&other, text), VST_E_ARGUMENT);
    }
    CHECK_INT(vst__histogram_read(&other, "{\"values\": [1, x]}"),
              VST_E_ARGUMENT);
    vst__histogram_free(&h);
    vst__histogram_free(&other);
}

int main(void)
{
    TEST(few_values_are_exact);
    TEST(many_values_are_near);
    TEST(buckets_are_those_of_opentelemetry);
    TEST(memory_is_bounded_however_far_apart_values_are);
    TEST(merged_is_what_one_histogram_of_all_is);
    TEST(what_is_written_can_be_read);
    TEST(the_longest_text_fits);
    TEST(damaged_text_is_refused);
    return checks_end();
}
