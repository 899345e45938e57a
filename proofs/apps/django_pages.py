from django.http import JsonResponse
from django.urls import path


def total(request, count):
    return JsonResponse({"total": sum(range(count))})


urlpatterns = [path("total/<int:count>", total)]
