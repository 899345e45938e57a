from django.contrib.auth.models import User
from django.test import TestCase


class SiteTest(TestCase):
    def test_users_are_kept(self):
        for number in range(30):
            User.objects.create_user(f"user{number}", password="x")
        self.assertEqual(User.objects.filter(username__contains="2").count(), 12)

    def test_the_view_adds_up(self):
        for count in range(50):
            self.assertEqual(self.client.get(f"/total/{count}").json()["total"], sum(range(count)))
